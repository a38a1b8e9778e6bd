/** The registry chart, explored exhaustively: recovery, fences, closing and its deadline, in every order. */
import { expect, test } from 'vitest'
import { registryMachine } from '../../../src/machines/registry/registry.machine.js'
import { describe as figuresOf, explore, reaching } from '../../model/explorer.js'
import { faultsOf, judgeFaults } from '../../model/faults.js'
import { registryChecks, registryModel } from '../../model/registry.js'

const exploration = explore(registryModel(), { maxStates: 20_000 })
console.log(figuresOf(exploration))

const asked = new Set<string>()
const holds = (id: string) => {
  asked.add(id)
  return () => {
    expect(exploration.violations.filter((violation) => violation.id === id)).toEqual([])
  }
}

test('INV-7: a launch is admitted in an open registry outside every fence, and nowhere else', holds('INV-7'))
test('K16: a fence stands from the record of its order to its settlement', holds('K16'))
test('O10: closing drains first, as the host chose, and names what outlives the deadline', holds('O10'))
test('INV-11: closing has its deadline', holds('INV-11'))
test('INV-3: a closed registry takes no event', holds('INV-3'))

test('O10: from every state the registry can be closed, and fences do not keep it open', () => {
  const live = reaching(
    exploration,
    ({ state }) => state === 'closed',
    ({ event }) => event.type === 'registry.close' || event.type === 'registry.emptied',
  )
  expect(live.size).toBe(exploration.nodes.length)
})

test('INV-7: every check of the registry model is asked for by a test of its rule', () => {
  expect(registryChecks.filter(({ id }) => !asked.has(id))).toEqual([])
})

test('INV-7: every action or effect of the registry that is left out breaks a claim', () => {
  const { table, survivors } = judgeFaults(faultsOf(registryMachine), registryModel)
  console.log(`mutants of the registry chart:\n${table}`)
  expect(survivors).toEqual([])
})
