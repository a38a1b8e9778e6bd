// @ts-check
/** Writes docs/verification.md: `npm run verification`; with `--measure [PART]` the figures are measured first, which takes minutes. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parts } from './verification/parts.js'

const figuresPath = join(import.meta.dirname, 'verification/figures.json')
const [flag, only] = process.argv.slice(2)

if (flag === '--measure') {
  /** @type {{ parts: import('./verification/page.js').Figure[] }} */
  const kept = JSON.parse(readFileSync(figuresPath, 'utf8'))
  for (const { part, command, keeps } of parts.filter((one) => only === undefined || one.part === only)) {
    const startedMs = performance.now()
    const { stdout } = spawnSync('bash', ['-c', command], {
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      env: { ...process.env, NO_COLOR: '1' },
    })
    const lines = stdout.split('\n').filter((line) => keeps.test(line))
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(0)
    const at = `${new Date().toISOString().slice(0, 10)}, ${seconds} s`
    kept.parts = [...kept.parts.filter((one) => one.part !== part), { part, command, at, lines }]
    console.log(`${part}: ${String(lines.length)} lines, ${seconds} s`)
  }
  const order = parts.map(({ part }) => part)
  kept.parts.sort((one, other) => order.indexOf(one.part) - order.indexOf(other.part))
  writeFileSync(figuresPath, `${JSON.stringify(kept, null, 2)}\n`)
}

const { verificationPage } = await import('./verification/page.js')
writeFileSync(join(import.meta.dirname, '../docs/verification.md'), verificationPage())
