// What stop means: an agent that ignores SIGTERM, with a child in a session of its own, is cancelled.
// Run it with `npm run demo`. It ends with 0 only if every process is proven gone.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEngine } from 'runwarden'

const folder = mkdtempSync(join(tmpdir(), 'runwarden-demo-'))
const engine = await createEngine({ database: join(folder, 'runs.db') })

const startedAt = performance.now()
const say = (text) => {
  console.log(`${((performance.now() - startedAt) / 1000).toFixed(2).padStart(6)} s  ${text}`)
}

// 1. Start it. Every transition is committed before anything is done about it.
const run = await engine.start({
  command: [process.execPath, join(import.meta.dirname, 'stubborn-agent.mjs')],
  task: 'demo',
  stop: { termGraceMs: 1_500 },
})

// 2. Follow it through its chart; cancel as soon as the whole tree is up.
const pids = []
let receipt
let before = run.state
for await (const event of run.events()) {
  if (event.type === 'accepted') say('accepted')
  if (event.type === 'launched') say(`  pid ${event.pid}, contained by ${event.containment}`)
  if (event.type === 'transition') {
    for (const region of ['work', 'process']) {
      if (event[region] !== before[region]) say(`${region.padEnd(7)} → ${event[region]}`)
    }
    before = event
  }
  if (event.type === 'output') {
    say(`  ${event.line}`)
    pids.push(Number(event.line.split(' ').at(-1)))
    if (pids.length === 4) receipt = run.cancel({ by: 'demo', reason: 'nobody needs this agent any more' })
  }
}

// 3. What is recorded.
const { transitions } = await engine.history(run.id)
console.log('\nThe journal:')
console.table(
  transitions.map(({ rev, event, from, to, effects }) => ({
    rev,
    event: event.replace(/^xstate\.after\.(\w+)\..*/, 'after $1'),
    work: to.work === from?.work ? '' : to.work,
    process: to.process === from?.process ? '' : to.process,
    effects: effects.map(({ kind }) => kind).join(', '),
  })),
)

// 4. What is claimed, and what the kernel says.
const { status } = await run.outcome
const { evidence } = await run.gone
const { status: answer } = await receipt
await engine.close()
rmSync(folder, { recursive: true })

/** A zombie is dead: it only waits to be counted. */
const isAlive = (pid) =>
  existsSync(`/proc/${pid}/stat`) && !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
const alive = pids.filter(isAlive)

console.log(
  `\nThe run is ${status}; its end is ${answer}, by ${evidence.map(({ kind }) => kind).join(', ')}.`,
)
console.log(
  `Left in /proc of the processes ${pids.join(', ')}: ${alive.length === 0 ? 'none' : alive.join(', ')}.`,
)
process.exitCode = answer === 'confirmed' && alive.length === 0 ? 0 : 1
