/** `runwarden jobs`: the queue, as people change it. What works it is in jobs-work.ts. */
import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'
import type { JobList, JobRecord, JobState } from '../jobs.js'
import { formatDuration } from './durations.js'
import { CliError } from './errors.js'
import { EXIT } from './exit-codes.js'
import { lineOf, placeOf, wordOf } from './job-place.js'
import type { PlaceOptions } from './job-place.js'
import { addJobsAdd } from './jobs-add.js'
import { addJobsWork } from './jobs-work.js'
import { clean, coloursFor, paintStatus, printJson, printLine, printLines, table } from './output.js'
import type { Colours, Column } from './output.js'
import { existingStore } from './store-path.js'
import { stdout } from './streams.js'
import { examples, verb } from './verb.js'
import type { SharedOptions } from './verb.js'

const OVER: readonly JobState[] = ['done', 'cancelled']
const OPEN: readonly JobState[] = ['pending', 'active', 'review', 'blocked', 'exhausted']

/** Runs a verb over the queue of a store that is there. */
const withQueue = async ({ db }: SharedOptions, act: (queue: JobList) => Promise<void>): Promise<void> => {
  const database = existingStore(db)
  const { openJobList } = await import('../jobs.js')
  await using queue = await openJobList({ database })
  await act(queue)
}

const print = async (job: JobRecord, { json: isJson }: SharedOptions): Promise<void> => {
  if (isJson === true) await printJson(job)
  else await printLine(lineOf(job))
}

const columnsOf = (now: number, colours: Colours): readonly Column<JobRecord>[] => [
  { title: 'JOB', of: ({ jobId }) => jobId },
  { title: 'STATE', of: wordOf, paint: (text, { state }) => paintStatus(colours, state)(text) },
  { title: 'LEFT', of: ({ attemptsLeft }) => String(attemptsLeft) },
  { title: 'AGE', of: ({ createdAt }) => formatDuration(now - createdAt) },
  { title: 'PROJECT', of: ({ project }) => project ?? '-' },
  { title: 'ACCOUNT', of: ({ account }) => account ?? '-' },
  { title: 'WHAT', of: ({ title, program }) => title ?? program },
  { title: 'WHY', of: ({ reason }) => reason },
]

const parseCount = (text: string): number => {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Give a whole number.')
  return Number(text)
}

interface ListOptions extends SharedOptions {
  readonly all?: boolean
  readonly project?: string
  readonly account?: string
  readonly behind?: string
  readonly limit?: number
}

const list = async (queue: JobList, options: ListOptions): Promise<void> => {
  const { all: isAll, project, account, behind, limit } = options
  const jobs = await queue.list({
    states: isAll === true ? [...OPEN, ...OVER] : [...OPEN],
    ...(project === undefined ? {} : { project }),
    ...(account === undefined ? {} : { account }),
    ...(behind === undefined ? {} : { behind }),
    ...(limit === undefined ? {} : { limit }),
  })
  if (options.json === true) {
    await printJson(jobs)
    return
  }
  const hold = await queue.held()
  if (hold !== null)
    await printLine(clean(`held by ${hold.by}${hold.reason === '' ? '' : `: ${hold.reason}`}`))
  if (jobs.length === 0) {
    await printLine(isAll === true ? 'no jobs' : 'no open jobs; --all shows the finished ones too')
    return
  }
  const colours = coloursFor(stdout)
  await printLines(table(jobs, columnsOf(Date.now(), colours), colours))
}

interface DropOptions extends SharedOptions {
  readonly reason?: string
  readonly removeWorktree?: boolean
  readonly force?: boolean
}

/** What became of the worktree is said beside the job; one that stays is no failure of the drop. */
const removeWorktree = async (queue: JobList, job: JobRecord, options: DropOptions): Promise<void> => {
  if (options.removeWorktree !== true || job.workspace === null) return
  const reply = await queue.removeWorkspace(job.jobId, { force: options.force === true })
  if (options.json === true) await printJson({ type: 'worktree', jobId: job.jobId, reply })
  else if (reply?.isOk === false) await printLine(clean(`worktree kept: ${reply.reason}`))
  else await printLine(clean(`worktree removed: ${job.workspace.path}`))
  if (reply?.isOk === false) process.exitCode = EXIT.refused
}

type Act = (
  queue: JobList,
  jobId: string,
  options: DropOptions & PlaceOptions & { attempts?: number },
) => Promise<void>

/** A verb over one job. */
const jobVerb = (jobs: Command, usage: string, summary: string, act: Act): Command =>
  verb(jobs, `${usage} <job>`, summary).action(async (jobId: string, _options: unknown, self: Command) => {
    const options = self.optsWithGlobals<DropOptions & PlaceOptions>()
    await withQueue(options, (queue) => act(queue, jobId, options))
  })

const withWorktree = (command: Command): Command =>
  command
    .option('--remove-worktree', 'and its worktree, unless it has uncommitted files')
    .option('--force', 'and what is uncommitted')

const addChanges = (jobs: Command): void => {
  jobVerb(jobs, 'show', 'one job: where it stands, and its journal', async (queue, jobId, options) => {
    const history = await queue.history(jobId)
    if (options.json === true) {
      await printJson(history)
      return
    }
    await printLine(lineOf(history.job))
    for (const { at, event, from, to } of history.transitions)
      await printLine(`  ${new Date(at).toISOString()}  ${event}  ${from === '' ? '' : `${from} → `}${to}`)
  })
  jobVerb(jobs, 'reorder', 'give it another place', async (queue, jobId, options) => {
    const place = placeOf('jobs reorder', options)
    if (place === undefined)
      throw new CliError('invalid-option', 'jobs reorder: give --first, --last, --before or --behind')
    await print(await queue.reorder(jobId, place), options)
  })
    .option('--first', 'before all others')
    .option('--last', 'behind all others')
    .option('--before <job>', 'before this one')
    .option('--behind <job>', 'behind this one')
  jobVerb(jobs, 'remove', 'forget a pending job', async (queue, jobId, options) => {
    await queue.remove(jobId)
    if (options.json === true) await printJson({ type: 'removed', jobId })
    else await printLine(`job ${jobId} removed`)
  })
  withWorktree(
    jobVerb(
      jobs,
      'drop',
      'give it up for good; refused while a run of it is going',
      async (queue, jobId, options) => {
        const job = await queue.drop(jobId, { by: 'cli', reason: options.reason ?? '' })
        await print(job, options)
        await removeWorktree(queue, job, options)
      },
    ),
  ).option('--reason <text>', 'why; it is on record')
  withWorktree(
    jobVerb(jobs, 'accept', 'take work under review: the job is done', async (queue, jobId, options) => {
      const job = await queue.accept(jobId, { by: 'cli' })
      await print(job, options)
      await removeWorktree(queue, job, options)
    }),
  )
  jobVerb(jobs, 'retry', 'another run of blocked or reviewed work', async (queue, jobId, options) => {
    await print(await queue.retry(jobId, { by: 'cli' }), options)
  })
  jobVerb(jobs, 'extend', 'grant further attempts', async (queue, jobId, options) => {
    await print(await queue.extend(jobId, { attempts: options.attempts ?? 1, by: 'cli' }), options)
  }).option('--attempts <count>', 'how many (default: 1)', parseCount)
}

const addHold = (jobs: Command): void => {
  verb(jobs, 'hold', 'pause the whole queue: nothing more is started')
    .option('--reason <text>', 'why; shown in lists')
    .action(async (_options: unknown, self: Command) => {
      const options = self.optsWithGlobals<SharedOptions & { reason?: string }>()
      await withQueue(options, async (queue) => {
        await queue.hold({ by: 'cli', reason: options.reason ?? '' })
        if (options.json === true) await printJson({ type: 'held', ...(await queue.held()) })
        else await printLine('the queue is held; `runwarden jobs release` lets it go on')
      })
    })
  verb(jobs, 'release', 'let a held queue go on').action(async (_options: unknown, self: Command) => {
    const options = self.optsWithGlobals<SharedOptions>()
    await withQueue(options, async (queue) => {
      await queue.release()
      if (options.json === true) await printJson({ type: 'released' })
      else await printLine('the queue goes on')
    })
  })
}

export const addJobs = (program: Command): void => {
  const jobs = verb(program, 'jobs', 'a queue of work that keeps its places')
  jobs.addHelpText('after', HELP)
  addJobsAdd(jobs)
  verb(jobs, 'list', 'the queue, in its order')
    .option('--all', 'and what is done or cancelled')
    .option('--project <name>', 'of this project only')
    .option('--account <name>', 'of this account only')
    .option('--behind <job>', 'the next page: what stands behind this one')
    .option('--limit <count>', 'at most so many (default: 100)', parseCount)
    .action(async (_options: unknown, self: Command) => {
      const options = self.optsWithGlobals<ListOptions>()
      await withQueue(options, (queue) => list(queue, options))
    })
  addChanges(jobs)
  addHold(jobs)
  addJobsWork(jobs)
}

const HELP = `${examples(
  'runwarden jobs add --project web -- claude -p "fix the login"',
  'runwarden jobs list',
  'runwarden jobs reorder fix-login --first',
  'runwarden jobs work --total 2',
)}

Exit codes: 0; 1 refused, with the reason; 66 there is no such job; 64 wrong usage;
74 the store cannot be used; \`work\`: 75 when processes of a run are still alive.`
