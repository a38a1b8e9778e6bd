/**
 * The guardian's program: waits for its engine to die, and then ends what the engine has left (R7).
 *
 * Owns: the judgement that the engine is gone. Light on purpose: the library is loaded only when there is something to end.
 * Messages in, on stdin: one line of JSON, the task; then `dismissed` (the engine closed: nothing is to be done) or `left` (it closed,
 *   and some of its runs are not proven gone).
 * Invariants: INV-5 (a pipe that ended is not a dead engine: its identity is), INV-11 (it outlives its engine for a named time at most).
 */
import { setTimeout as wait } from 'node:timers/promises'
import { lookUpIdentity } from './adapters/process/proc-fs.js'
import type { GuardianTask } from './guardian-task.js'

/** Behind the pipe: a process that the host forked may hold our end of it open after the engine's death. */
const LOOK_MS = 2_000
/** The pipe has ended: the engine is as good as gone. */
const FIRST_LOOK_MS = 5

type Word = 'dismissed' | 'left'

interface Pipe {
  readonly task: Promise<GuardianTask | null>
  /** Resolves with the engine's last word, or null when the pipe ended without one. */
  readonly ended: Promise<Word | null>
}

const parseTask = (line: string): GuardianTask | null => {
  try {
    return JSON.parse(line) as GuardianTask
  } catch {
    return null
  }
}

const readPipe = (): Pipe => {
  let text = ''
  let giveTask: (task: GuardianTask | null) => void = () => undefined
  const task = new Promise<GuardianTask | null>((resolve) => {
    giveTask = resolve
  })
  const ended = new Promise<Word | null>((resolve) => {
    const end = (): void => {
      const [first = '', last] = text.split('\n')
      giveTask(parseTask(first))
      resolve(last === 'dismissed' || last === 'left' ? last : null)
    }
    process.stdin.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const lines = text.split('\n')
      if (lines.length > 1) giveTask(parseTask(lines[0] ?? ''))
      // Said, and the pipe is still open: whoever holds it does not matter.
      if (lines.length > 2) end()
    })
    process.stdin.once('end', end).once('error', end)
  })
  return { task, ended }
}

const untilGone = async (identity: GuardianTask['identity'], waitMs: (look: number) => number) => {
  for (let look = 0; lookUpIdentity(identity) !== 'gone'; look += 1)
    await wait(waitMs(look), undefined, { ref: true })
}

const watch = async (pipe: Pipe, { identity }: GuardianTask): Promise<Word | 'died'> => {
  const died = untilGone(identity, () => LOOK_MS).then(() => 'died' as const)
  const word = await Promise.race([pipe.ended, died])
  if (word !== null) return word
  await untilGone(identity, (look) => Math.min(FIRST_LOOK_MS * 2 ** look, LOOK_MS))
  return 'died'
}

process.title = 'runwarden-guardian'
// It goes with its engine, and by nothing that is sent to a group or a service as a whole.
for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM'] as const) process.on(signal, () => undefined)

const pipe = readPipe()
const task = await pipe.task
if (task !== null && (await watch(pipe, task)) !== 'dismissed') {
  const { endRunsOf } = await import('./guardian.js')
  await endRunsOf(task)
}
process.exit(0)
