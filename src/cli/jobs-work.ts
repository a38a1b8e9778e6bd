/**
 * `runwarden jobs work`: an engine that works the queue, until nothing is left to start or a signal.
 *
 * The first signal interrupts what runs, and the jobs return to their places; the second one kills. On a terminal a line says how it
 * goes; each job that moved is a line on stdout, or with `--json` an object.
 */
import { dirname, join } from 'node:path'
import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'
import type { Engine } from '../index.js'
import type { JobEventOut, JobQueue, WorkReport } from '../jobs.js'
import { formatDuration } from './durations.js'
import { EXIT } from './exit-codes.js'
import { lineOf } from './job-place.js'
import { printJson, printLine } from './output.js'
import { AskingSignals } from './signals.js'
import { StatusLine } from './status-line.js'
import { newOrExistingStore } from './store-path.js'
import { stderr, stdout } from './streams.js'
import { examples, verb } from './verb.js'
import type { SharedOptions } from './verb.js'

const CLOSE_DEADLINE_MS = 15_000
const LEFT_CLOSE_DEADLINE_MS = 2_000
const COUNT_EVERY_MS = 1_000

interface WorkVerbOptions extends SharedOptions {
  readonly total?: number
  readonly perProject?: number
  readonly perAccount?: number
  readonly forever?: boolean
  readonly worktrees?: string
  readonly guardian?: boolean
}

const parseSlots = (text: string): number => {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('Give a whole number from 1.')
  return Number(text)
}

/** Counts for the status line, asked for only where there is one. */
const countingOn = (queue: JobQueue): { text: () => string; stop: () => void } => {
  if (!stderr.isTerminal) return { text: () => '', stop: () => undefined }
  const startedAt = performance.now()
  let said = 'jobs'
  const count = (): void => {
    // A store that does not answer leaves the last count standing.
    queue.count().then(
      (counts) => {
        said = (['active', 'pending', 'review', 'blocked', 'exhausted', 'done'] as const)
          .filter((state) => counts[state] > 0 || state === 'active')
          .map((state) => `${String(counts[state])} ${state}`)
          .join(' · ')
      },
      () => undefined,
    )
  }
  count()
  const timer = setInterval(count, COUNT_EVERY_MS)
  timer.unref()
  return {
    text: () => `jobs  ${said} · ${formatDuration(performance.now() - startedAt)}`,
    stop: () => {
      clearInterval(timer)
    },
  }
}

/** One piece after the other, so that lines keep their order. */
const printerOf = (isJson: boolean, status: StatusLine) => {
  let printed: Promise<void> = Promise.resolve()
  return {
    tell: (event: JobEventOut): void => {
      printed = printed.then(async () => {
        await status.hide()
        if (isJson) await printJson(event)
        else if (event.job !== null) await printLine(lineOf(event.job))
        else await printLine(`job ${event.jobId} · removed`)
      })
    },
    done: (): Promise<void> => printed,
  }
}

/** The second signal does not wait for graces. */
const force = (engine: Engine): void => {
  const run = engine.live().map(({ runId }) => runId)
  if (run.length === 0) return
  // Its answer comes as the end of the runs.
  engine
    .stop({ run }, { mode: 'interrupt', force: true, by: 'signal', reason: 'a second signal', fence: false })
    .catch(() => undefined)
}

const supervise = async (
  engine: Engine,
  queue: JobQueue,
  signals: AskingSignals,
  options: WorkVerbOptions,
): Promise<WorkReport> => {
  const { json: isJson = false, forever: isForever = false } = options
  const counting = countingOn(queue)
  const status = new StatusLine(stderr, counting.text)
  const printer = printerOf(isJson, status)
  const unsubscribe = queue.subscribe(printer.tell)
  const leaving = new AbortController()
  signals.onEach((_, count) => {
    if (count === 1) leaving.abort()
    else force(engine)
  })
  // Nobody reads any more: nobody would know.
  stdout.onClosed(() => {
    leaving.abort()
  })
  const report = await queue.work({ until: isForever ? 'stopped' : 'idle', signal: leaving.signal })
  await queue.caughtUp()
  unsubscribe()
  counting.stop()
  await printer.done()
  await status.end()
  return report
}

const sayEnd = async (report: WorkReport, { json: isJson }: WorkVerbOptions): Promise<void> => {
  if (isJson === true) {
    await printJson({ type: 'work-ended', ...report })
    return
  }
  const { reason, started, left } = report
  const runs = `${String(started)} ${started === 1 ? 'run' : 'runs'} started`
  await stderr.write(`runwarden: ${reason === 'held' ? 'the queue is held' : reason} · ${runs}\n`)
  if (left.length > 0) await stderr.write(`runwarden: not proven gone: ${left.join(', ')}\n`)
}

const work = async (options: WorkVerbOptions): Promise<void> => {
  const signals = new AskingSignals()
  const database = newOrExistingStore(options.db)
  const { createEngine } = await import('../index.js')
  const { openJobs } = await import('../jobs.js')
  const engine = await createEngine({ database, guardian: options.guardian ?? true })
  let isLeft = false
  try {
    const { total = 1, perProject, perAccount, worktrees } = options
    const queue = await openJobs(engine, {
      caps: {
        total,
        ...(perProject === undefined ? {} : { perProject }),
        ...(perAccount === undefined ? {} : { perAccount }),
      },
      workspaces: { root: worktrees ?? join(dirname(database), 'worktrees') },
    })
    const report = await supervise(engine, queue, signals, options)
    await sayEnd(report, options)
    isLeft = report.left.length > 0
  } finally {
    const { left } = await engine.close({
      runs: 'interrupt',
      deadlineMs: isLeft ? LEFT_CLOSE_DEADLINE_MS : CLOSE_DEADLINE_MS,
    })
    isLeft = left.length > 0
  }
  process.exitCode = isLeft ? EXIT.unconfirmed : EXIT.ok
}

export const addJobsWork = (jobs: Command): void => {
  verb(jobs, 'work', 'run jobs until nothing is left to start, or SIGTERM')
    .option('--total <count>', 'active at once, of all workers over the store (default: 1)', parseSlots)
    .option('--per-project <count>', 'of one project', parseSlots)
    .option('--per-account <count>', 'of one account', parseSlots)
    .option('--forever', 'wait for more when nothing is left')
    .option('--worktrees <folder>', 'where worktrees are made (default: beside the store)')
    .option('--no-guardian', 'let processes of the runs outlive this one when it is killed')
    .addHelpText(
      'after',
      `${examples('runwarden jobs work', 'runwarden jobs work --total 4 --per-account 1 --forever --json')}

The first SIGINT, SIGTERM or SIGHUP interrupts what runs; the jobs return to their places.
The second kills at once. Exit code 0, or 75 when processes of a run are still alive.`,
    )
    .action(async (_options: unknown, self: Command) => {
      await work(self.optsWithGlobals<WorkVerbOptions>())
    })
}
