/** What docs/verification.md says of the tests is so. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { rulesOnPage, verificationPage } from '../scripts/verification/page.js'
import { untested } from './tidy/exemptions.js'
import { readSources, testNamesOf } from './tidy/source-tree.js'

test('TIDY: docs/verification.md is that of the sources', () => {
  const page = readFileSync(join(import.meta.dirname, '../docs/verification.md'), 'utf8')
  expect(page === verificationPage(), 'docs/verification.md is behind: npm run verification').toBe(true)
})

test('TIDY: every invariant and rule of docs/rules.md has a test named after it, but those that are still to come', () => {
  const tested = new Set(
    readSources('test')
      .flatMap(testNamesOf)
      .flatMap((name) => (/^[A-Z]+-?\d*(?:, [A-Z]+-?\d*)*(?=: )/.exec(name) ?? [''])[0].split(', ')),
  )
  const rules = rulesOnPage().map(({ id }) => id)
  const allowed = new Set(untested.flatMap(({ ids }) => ids))
  const lacking = rules.filter((id) => !tested.has(id) && !allowed.has(id))
  expect(lacking).toEqual([])
  expect([...allowed].filter((id) => tested.has(id)).map((id) => `${id} has a test now`)).toEqual([])
})
