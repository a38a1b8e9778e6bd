/**
 * Proving that a process which another one started for us is the one it says it is (P13).
 *
 * What it says of itself, its name and its command line count for nothing: it must bear the cookie that was minted for it, and be the
 * pane's shell or descend from it.
 */
import { COOKIE_VARIABLE } from '../../actors/ports.js'
import type { Claimed } from '../../actors/pane.ports.js'
import type { ExecutionMarks } from '../../actors/ports.js'
import { libc } from './libc.js'
import { identify, isAlive, isStillThere, readEnvironment, readStat } from './proc-fs.js'

const GENERATIONS_MAX = 64

const descends = (pid: number, ancestor: number): boolean => {
  let current = pid
  for (let generation = 0; generation < GENERATIONS_MAX && current > 1; generation += 1) {
    if (current === ancestor) return true
    current = readStat(current)?.parent ?? 0
  }
  return false
}

const bearsCookie = (pid: number, cookie: string): boolean => {
  const stat = readStat(pid)
  if (stat === null || !isAlive(stat)) return false
  const found = readEnvironment(stat, COOKIE_VARIABLE)
  return typeof found === 'object' && (found.value?.split(':').includes(cookie) ?? false)
}

export const claim = (pid: number, shellPid: number, marks: ExecutionMarks): Claimed | null => {
  const leader = identify(pid)
  const shell = identify(shellPid)
  if (leader === null || shell === null || !bearsCookie(pid, marks.cookie)) return null
  const stat = readStat(pid)
  if (stat === null || stat.startTicks !== leader.startTicks || !descends(pid, shellPid)) return null
  if (marks.limit !== null) libc()?.markProcess(pid, marks.limit)
  return isStillThere(stat) ? { leader, shell } : null
}

/** Its group has the terminal, so that what is typed reaches it and no program that it started. */
export const isForeground = (pid: number): boolean => {
  const stat = readStat(pid)
  return stat !== null && isAlive(stat) && stat.foreground === stat.group
}
