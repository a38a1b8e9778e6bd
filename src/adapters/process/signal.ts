/**
 * The one door through which a signal leaves this library (INV-2).
 *
 * Invariants: INV-6 and INV-14 (the identity is proven at that moment), C7, C8, C9.
 */
import { closeSync } from 'node:fs'
import { constants } from 'node:os'
import type { SignalFailure, TreeMember } from '../../actors/ports.js'
import { codeOf } from '../../errors.js'
import { libc } from './libc.js'
import { isAlive, readStat } from './proc-fs.js'

export type StopSignal = 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'

/** C8: never init, never ourselves, never a process of our own group. */
export const isForbidden = (pid: number, group: number): boolean =>
  !Number.isSafeInteger(pid) || pid <= 1 || pid === process.pid || group === ownGroup()

let knownGroup: number | undefined
const ownGroup = (): number => (knownGroup ??= readStat(process.pid)?.group ?? process.pid)

const holds = (member: TreeMember): boolean => {
  const stat = readStat(member.pid)
  return stat !== null && stat.startTicks === member.startTicks && isAlive(stat)
}

/** Null when the signal was sent, or there is nothing left to send it to. */
const send = (member: TreeMember, signal: StopSignal): SignalFailure | null => {
  const { pid } = member
  const stat = readStat(pid)
  // C9: gone, or its number belongs to a stranger by now.
  if (stat === null || stat.startTicks !== member.startTicks) return null
  if (isForbidden(pid, stat.group)) return { pid, error: 'refused' }
  const fd = libc()?.openPidfd(pid) ?? -1
  try {
    if (fd < 0) {
      process.kill(pid, signal)
    } else if (holds(member) && libc()?.signalPidfd(fd, constants.signals[signal]) !== 0 && holds(member)) {
      // The descriptor says only that it failed; the system call says why.
      process.kill(pid, signal)
    }
    return null
  } catch (error) {
    const code = codeOf(error) ?? 'unknown'
    return code === 'ESRCH' ? null : { pid, error: code }
  } finally {
    if (fd >= 0) closeSync(fd)
  }
}

export const signalMembers = (signal: StopSignal, members: readonly TreeMember[]): readonly SignalFailure[] =>
  members.map((member) => send(member, signal)).filter((failure) => failure !== null)
