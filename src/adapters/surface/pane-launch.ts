/**
 * Brings a command into a pane: a new one, or one whose shell is at its prompt.
 *
 * Owns: the order. The pane runs our launcher; the process that will be the command says who it is, is proven to be that (P13) and
 * marked, its output is connected, it is brought into a cgroup where it can be (C2), and only then is it given the command. Whatever
 * fails before leaves nothing that could start it.
 * Invariants: P14 (one deadline over all that tmux is asked), R2, L7.
 */
import { randomBytes } from 'node:crypto'
import { cookiesOf } from '../../actors/ports.js'
import type { Claimed, PaneProcessPort } from '../../actors/pane.ports.js'
import type { LaunchSpec, PanePlace, PaneSpec } from '../../actors/ports.js'
import { RunwardenError, messageOf } from '../../errors.js'
import { commandScript, quote } from './launcher.js'
import { PaneOutput, passOnTo } from './pane-output.js'
import { PaneReports } from './pane-reports.js'
import { Pane, wait } from './pane.js'
import { Rendezvous } from './rendezvous.js'
import { ask, literal, literalInTime } from './tmux.js'

const LAUNCH_DEADLINE_MS = 10_000
const CLEAN_UP_DEADLINE_MS = 500
const PROMPT_DEADLINE_MS = 1_000
const PROMPT_WAIT_MS = 50
const SESSION_TRIES = 3
/** A pane's option that names the run's cookie: how a pane is found whose id was never recorded. */
export const PANE_TAG = '@runwarden'

const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'fish', 'ksh', 'mksh', 'ash', 'tcsh', 'csh', 'busybox'])

export interface PaneLaunch {
  readonly pane: Pane
  readonly leader: Claimed['leader']
  readonly reports: PaneReports
  readonly output: PaneOutput
  readonly rendezvous: Rendezvous
}

interface Found {
  readonly serverPid: number
  readonly paneId: string
  readonly panePid: number
}

const FOUND_FORMAT = '#{pid} #{pane_id} #{pane_pid}'

const parseFound = (text: string): Found => {
  const [serverPid, paneId = '', panePid] = text.trim().split(' ')
  return { serverPid: Number(serverPid), paneId, panePid: Number(panePid) }
}

/** One deadline for many questions. */
class Deadline {
  readonly #endsAt = performance.now() + LAUNCH_DEADLINE_MS

  get leftMs(): number {
    return Math.max(1, this.#endsAt - performance.now())
  }

  async bound<T>(promise: Promise<T>, what: string): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const passed = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new RunwardenError('refused', `${what} within ${String(LAUNCH_DEADLINE_MS)} ms`))
      }, this.leftMs)
    })
    return Promise.race([promise, passed]).finally(() => {
      clearTimeout(timer)
    })
  }
}

const hasSaid = (error: unknown, words: string): boolean => messageOf(error).includes(words)

const makePane = async (spec: PaneSpec, launcher: string, deadline: Deadline): Promise<Found> => {
  const { socket, session, window } = spec
  const rest = [
    ...['-d', '-P', '-F', FOUND_FORMAT],
    ...(window === undefined ? [] : ['-n', literal(window)]),
    ...['--', '/bin/sh', launcher],
  ]
  for (let tries = 1; ; tries += 1) {
    try {
      const args = ['new-window', '-t', `=${session}:`, ...rest]
      return parseFound(await ask(socket, args, { withinMs: deadline.leftMs }))
    } catch (error) {
      // No server there, or no such session: anything else is an answer.
      const isToBeMade = ["can't find session", 'no server running', 'error connecting', 'no sessions']
      if (tries >= SESSION_TRIES || !isToBeMade.some((words) => hasSaid(error, words))) throw error
    }
    try {
      const args = ['new-session', '-s', literal(session), ...rest]
      return parseFound(await ask(socket, args, { withinMs: deadline.leftMs }))
    } catch (error) {
      // Another run made it meanwhile.
      if (!hasSaid(error, 'duplicate session')) throw error
    }
  }
}

/** The pane, when its shell would read what is typed. The last command's end, a candidate's too, may be only a moment ago. */
const findAtPrompt = async (
  { socket }: PaneSpec,
  paneId: string,
  processes: PaneProcessPort,
  deadline: Deadline,
): Promise<Found> => {
  const format = `${FOUND_FORMAT} #{pane_in_mode}#{pane_dead}#{pane_pipe} #{pane_current_command}`
  const question = ['display-message', '-p', '-t', paneId, format]
  const endsAt = performance.now() + PROMPT_DEADLINE_MS
  for (;;) {
    const answer = await ask(socket, question, { withinMs: deadline.leftMs })
    const found = parseFound(answer)
    const [, , , flags, program = ''] = answer.trim().split(' ')
    if (flags === '000' && SHELLS.has(program) && processes.isForeground(found.panePid)) return found
    if (performance.now() >= endsAt)
      throw new RunwardenError('refused', `pane ${paneId} is not at the prompt of a shell`)
    await wait(PROMPT_WAIT_MS)
  }
}

/** Tells the shell of a pane that is there to run the launcher. */
const borrowPane = async (
  spec: PaneSpec,
  paneId: string,
  launcher: string,
  processes: PaneProcessPort,
  deadline: Deadline,
): Promise<Found> => {
  const { socket } = spec
  const found = await findAtPrompt(spec, paneId, processes, deadline)
  // The blank keeps it out of the history of most shells.
  const line = ` /bin/sh ${quote(launcher)}`
  const keys = ['send-keys', '-t', paneId, '-l', line, ';', 'send-keys', '-t', paneId, 'Enter']
  await ask(socket, keys, { withinMs: deadline.leftMs })
  return found
}

const connectOutput = async (launch: PaneLaunch, deadline: Deadline): Promise<void> => {
  const { pane, output, rendezvous } = launch
  const path = literalInTime(quote(`${rendezvous.folder}/output`))
  const args = ['pipe-pane', '-O', '-t', pane.place.paneId, passOnTo(path)]
  await ask(pane.socket, args, { withinMs: deadline.leftMs })
  await deadline.bound(output.connected, 'tmux did not connect the output')
  rendezvous.met('output')
}

const decorate = async (
  spec: PaneSpec,
  { pane }: PaneLaunch,
  cookie: string,
  deadline: Deadline,
): Promise<void> => {
  const { paneId } = pane.place
  const title = spec.title === undefined ? [] : [';', 'select-pane', '-t', paneId, '-T', literal(spec.title)]
  const args = ['set-option', '-p', '-t', paneId, PANE_TAG, cookie, ...title]
  await ask(spec.socket, args, { withinMs: deadline.leftMs })
}

const placeOf = (found: Found, claimed: Claimed, processes: PaneProcessPort): PanePlace => {
  const server = processes.identify(found.serverPid)
  if (server === null) throw new RunwardenError('refused', 'the tmux server cannot be identified')
  return { server, paneId: found.paneId, shell: claimed.shell }
}

const openPane = async (
  spec: LaunchSpec,
  paneSpec: PaneSpec,
  processes: PaneProcessPort,
  rendezvous: Rendezvous,
  deadline: Deadline,
  onFound: (found: Found) => void,
): Promise<PaneLaunch> => {
  const endMark = `\x1b]7727;${randomBytes(8).toString('hex')}\x07`
  const launcher = rendezvous.writeLauncher({
    cookies: cookiesOf(spec),
    endMark,
    endsInShell: paneSpec.isRetained && paneSpec.paneId === undefined,
  })
  const reports = new PaneReports(rendezvous.report)
  const output = new PaneOutput(rendezvous.output, endMark)
  const { paneId } = paneSpec
  const found =
    paneId === undefined
      ? await makePane(paneSpec, launcher, deadline)
      : await borrowPane(paneSpec, paneId, launcher, processes, deadline)
  onFound(found)
  const agentPid = await deadline.bound(reports.agent, 'nothing was heard from the pane')
  rendezvous.met('report')
  const claimed = agentPid === null ? null : processes.claim(agentPid, found.panePid, spec.marks)
  if (claimed === null)
    throw new RunwardenError('refused', `the process in pane ${found.paneId} cannot be proven to be ours`)
  const pane = new Pane(paneSpec.socket, placeOf(found, claimed, processes), processes)
  const launch = { pane, leader: claimed.leader, reports, output, rendezvous }
  await connectOutput(launch, deadline)
  await decorate(paneSpec, launch, spec.marks.cookie, deadline)
  return launch
}

/** By socket and pane: the launch that types there, or waits to. */
const borrowing = new Map<string, Promise<unknown>>()

/** Two launches at one prompt would type into each other's command: they come one after the other. */
const inTurn = async <T>(
  { socket, paneId }: PaneSpec,
  deadline: Deadline,
  act: () => Promise<T>,
): Promise<T> => {
  if (paneId === undefined) return act()
  const key = `${paneId} ${socket}`
  const before = borrowing.get(key)?.catch(() => undefined) ?? Promise.resolve()
  const turn = deadline.bound(before, 'another launch in the pane was not over').then(act)
  borrowing.set(key, turn)
  try {
    return await turn
  } finally {
    if (borrowing.get(key) === turn) borrowing.delete(key)
  }
}

export const launchInPane = async (
  spec: LaunchSpec,
  paneSpec: PaneSpec,
  processes: PaneProcessPort,
): Promise<PaneLaunch & { readonly containment: 'cgroup' | 'pane' }> => {
  processes.assertLaunchable(spec)
  let found: Found | undefined
  const rendezvous = await Rendezvous.open()
  try {
    const deadline = new Deadline()
    const launch = await inTurn(paneSpec, deadline, () =>
      openPane(spec, paneSpec, processes, rendezvous, deadline, (one) => (found = one)),
    )
    const problem = processes.hold(launch.leader, spec.marks)
    rendezvous.giveCommand(commandScript(spec))
    rendezvous.removeFolder()
    return { ...launch, containment: problem === null ? 'cgroup' : 'pane' }
  } catch (error) {
    // The command was not given: what waits for it reads an end, and ends.
    rendezvous.abandon()
    if (found !== undefined && paneSpec.paneId === undefined) {
      const args = ['kill-pane', '-t', found.paneId]
      await ask(paneSpec.socket, args, { withinMs: CLEAN_UP_DEADLINE_MS }).catch(() => undefined)
    }
    throw new RunwardenError(
      'refused',
      `cannot launch ${String(spec.command[0])} in tmux: ${messageOf(error)}`,
    )
  }
}
