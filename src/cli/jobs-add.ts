/** `runwarden jobs add`: one job for the queue. */
import { InvalidArgumentError, Option } from 'commander'
import type { Command } from 'commander'
import type { OnRecover } from '../index.js'
import type { JobSpec } from '../jobs.js'
import { parseDuration } from './durations.js'
import { placeOf } from './job-place.js'
import type { PlaceOptions } from './job-place.js'
import { printJson, printLine } from './output.js'
import { protocolJobOf, protocolOptions } from './protocols.js'
import type { ProtocolFlags } from './protocols.js'
import { collectLabel, onRecoverOption } from './run.js'
import { newOrExistingStore } from './store-path.js'
import { examples, verb } from './verb.js'
import type { SharedOptions } from './verb.js'

interface AddOptions extends SharedOptions, PlaceOptions, ProtocolFlags {
  readonly id?: string
  readonly title?: string
  readonly project?: string
  readonly account?: string
  readonly session?: string
  readonly task?: string
  readonly label?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly inheritEnv?: boolean
  readonly attempts?: number
  readonly review?: boolean
  readonly after?: readonly string[]
  readonly worktree?: string
  readonly branch?: string
  readonly base?: string
  readonly termGrace?: number
  readonly killGrace?: number
  readonly onRecover?: OnRecover
}

const collectName = (text: string, names: readonly string[] = []): readonly string[] => [...names, text]

const collectVariable = (
  text: string,
  variables: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> => {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Give a variable as NAME=value; it is stored.')
  return { ...variables, [text.slice(0, at)]: text.slice(at + 1) }
}

const parseCount = (text: string): number => {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Give a whole number.')
  return Number(text)
}

/** Only what was given. */
const given = <T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never

const specOf = (command: readonly string[], options: AddOptions): JobSpec => {
  const { id, title, project, account, session, task, label, cwd, env, inheritEnv, attempts, review } =
    options
  const { after, worktree, branch, base, termGrace, killGrace, onRecover } = options
  const spec = given({
    id,
    title,
    project,
    account,
    session,
    task,
    labels: label,
    cwd,
    attempts,
    review,
    onRecover,
    after: after === undefined ? undefined : [...after],
    place: placeOf('jobs add', options),
    workspace: worktree === undefined ? undefined : { repository: worktree, ...given({ branch, base }) },
  })
  return {
    ...(spec as Omit<JobSpec, 'command'>),
    ...protocolJobOf(options),
    command: [...command],
    env: { inherit: inheritEnv ?? true, ...given({ set: env }) },
    stop: given({ termGraceMs: termGrace, killGraceMs: killGrace }),
  }
}

const duration = (flags: string, what: string): Option => new Option(flags, what).argParser(parseDuration)

export const addJobsAdd = (jobs: Command): void => {
  const command = verb(jobs, 'add', 'add a job, at the end or at a place')
    .usage('[options] -- <command> [args...]')
    .argument('<command...>', 'the program and its arguments; no shell. They are stored')
    .passThroughOptions()
    .option('--id <id>', 'its id (default: a new one)')
    .option('--title <text>', 'what it is, for lists')
    .option('--project <name>', 'under whose cap it counts')
    .option('--account <name>', 'under whose cap it counts')
    .option('--session <name>', 'of its runs')
    .option('--task <name>', "of its runs (default: the job's id)")
    .option('--label <name=value>', 'of its runs; may be repeated', collectLabel)
    .option('--cwd <folder>', 'where it runs (default: here; with --worktree a folder in it)')
    .option('--env <NAME=value>', 'a variable for its runs; stored; may be repeated', collectVariable)
    .option('--no-inherit-env', "without the worker's own variables")
    .option('--attempts <count>', 'runs before it is exhausted (default: 3)', parseCount)
    .option('--review', 'completed work waits for `accept` (default with --worktree)')
    .option('--no-review', 'completed work is done')
    .option('--after <job>', 'a job that must be done first; may be repeated', collectName)
    .option('--first', 'before all others')
    .option('--before <job>', 'before this one')
    .option('--behind <job>', 'behind this one')
    .option('--worktree <repository>', 'in a git worktree and branch of its own')
    .option('--branch <name>', 'the name of that branch')
    .option('--base <commit>', 'where that branch begins (default: HEAD)')
    .addOption(duration('--term-grace <time>', 'from TERM to KILL (default: 5s)'))
    .addOption(duration('--kill-grace <time>', 'from KILL to unconfirmed (default: 2s)'))
    .addOption(onRecoverOption())
  for (const option of protocolOptions()) command.addOption(option)
  command
    .addHelpText(
      'after',
      examples(
        'runwarden jobs add -- npm test',
        'runwarden jobs add --id fix-login --project web --worktree . -- claude -p "fix the login"',
        'runwarden jobs add --protocol acp --input prompt.md --never-started 2m -- gemini --experimental-acp',
        'runwarden jobs add --after fix-login -- ./deploy.sh',
      ),
    )
    .action(async (command: string[], _options: unknown, self: Command) => {
      const options = self.optsWithGlobals<AddOptions>()
      const spec = specOf(command, options)
      const database = newOrExistingStore(options.db)
      const { openJobList } = await import('../jobs.js')
      await using queue = await openJobList({ database })
      const job = await queue.add(spec)
      if (options.json === true) await printJson(job)
      else await printLine(job.jobId)
    })
}
