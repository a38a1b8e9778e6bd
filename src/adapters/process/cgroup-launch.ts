/** Launches a candidate into a cgroup of its own, and answers when it is in there. */
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { LaunchSpec, OutputStream, ProcessIdentity } from '../../actors/ports.js'
import { RunwardenError, messageOf } from '../../errors.js'
import type { Cgroup } from './cgroup.js'
import { JOIN_FAILED_CODE, JOIN_SCRIPT, joinFile, joining, lostVariables } from './cgroup-join.js'
import { launch } from './launch.js'
import type { LaunchedProcess } from './launch.js'
import { readStat } from './proc-fs.js'
import { signalMembers } from './signal.js'

const JOIN_DEADLINE_MS = 10_000
const LOOK_EVERY_MS = 1
/** Among the first of the shell's arguments is the script. */
const SCRIPT_WORDS = 4

const failed = (cgroup: Cgroup, why: string): RunwardenError =>
  new RunwardenError('refused', `the command was not run: ${why} (cgroup ${cgroup.folder})`)

/** The shell has become the command: it does so only from inside. A command may leave at once. */
const hasBegun = (pid: number): boolean => {
  try {
    const words = readFileSync(`/proc/${String(pid)}/cmdline`, 'utf8').split('\0')
    return words.length > 1 && !words.slice(0, SCRIPT_WORDS).includes(JOIN_SCRIPT)
  } catch {
    return false
  }
}

/** An exit code other than that of the script is the command's. */
const hasJoined = (cgroup: Cgroup, pid: number, exitCode: number | null | undefined): boolean =>
  exitCode === undefined
    ? cgroup.contains(pid) || hasBegun(pid)
    : exitCode !== JOIN_FAILED_CODE || cgroup.hasBeenUsed()

const untilJoined = async (cgroup: Cgroup, launched: LaunchedProcess): Promise<void> => {
  const { identity, exited } = launched
  let exitCode: number | null | undefined
  void exited.then((exit) => {
    exitCode = exit.exitCode
  })
  const endsAt = performance.now() + JOIN_DEADLINE_MS
  while (!hasJoined(cgroup, identity.pid, exitCode)) {
    if (exitCode !== undefined) throw failed(cgroup, 'it could not be put into its cgroup')
    if (performance.now() >= endsAt) {
      // With what it may have begun since the last look.
      cgroup.kill()
      signalMembers('SIGKILL', [{ ...identity, state: '?', name: 'sh' }])
      await exited
      throw failed(cgroup, `it was not in its cgroup within ${String(JOIN_DEADLINE_MS)} ms`)
    }
    await delay(LOOK_EVERY_MS)
  }
}

/**
 * A process that another program has started, and that waits to become the command (P13). Null when it is in its cgroup, else why it is
 * not: without root, the cgroups around both must be ours too.
 */
export const bringInto = (cgroup: Cgroup, { pid, startTicks }: ProcessIdentity): string | null => {
  // INV-6: the kernel knows it by its number alone, so that it is proven before and after.
  const isThere = (): boolean => readStat(pid)?.startTicks === startTicks
  try {
    cgroup.make()
    if (isThere()) writeFileSync(joinFile(cgroup.folder), String(pid))
    if (isThere() && cgroup.contains(pid)) return null
    cgroup.remove()
    return 'the process is gone'
  } catch (error) {
    cgroup.remove()
    return messageOf(error)
  }
}

/** L2: Node throws away what a child wrote that has exited before anybody listens. What comes during the wait is kept for the receiver. */
const keepingOutput = (launched: LaunchedProcess): LaunchedProcess => {
  // What goes to files is kept there.
  if (launched.finishOutput !== undefined) return launched
  const kept: [OutputStream, Buffer][] = []
  let receive = (stream: OutputStream, chunk: Buffer): void => {
    kept.push([stream, chunk])
  }
  launched.onOutput((stream, chunk) => {
    receive(stream, chunk)
  })
  return {
    ...launched,
    onOutput: (receiver) => {
      receive = receiver
      for (const [stream, chunk] of kept.splice(0)) receiver(stream, chunk)
    },
  }
}

/** A cgroup is to be had here, and could not be made this time: there are as many of them as there may be, for one. */
export class NoCgroup extends RunwardenError {
  constructor(cgroup: Cgroup, cause: unknown) {
    super('refused', `the command was not run: ${messageOf(cause)} (cgroup ${cgroup.folder})`, { cause })
  }
}

const makeOrSay = (cgroup: Cgroup): void => {
  try {
    cgroup.make()
  } catch (error) {
    throw new NoCgroup(cgroup, error)
  }
}

/** Rejects when there is no process; then there is no cgroup either. With `NoCgroup` nothing was tried that a launch without one would not. */
export const launchInto = async (cgroup: Cgroup, spec: LaunchSpec): Promise<LaunchedProcess> => {
  const lost = lostVariables(spec.env)
  if (lost.length > 0) {
    // L7: names are no secret, values are.
    throw failed(cgroup, `/bin/sh cannot pass on the environment variables ${lost.join(', ')}`)
  }
  makeOrSay(cgroup)
  try {
    const launched = keepingOutput(await launch(spec, (command) => joining(cgroup.folder, command, spec.env)))
    await untilJoined(cgroup, launched)
    return launched
  } catch (error) {
    cgroup.remove()
    throw error
  }
}
