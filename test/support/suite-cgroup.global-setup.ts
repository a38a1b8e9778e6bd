/**
 * The suite runs in a cgroup of its own, where it may make one. Engines make theirs below their own: a test whose run is to be left alone,
 * or whose engine is killed and not recovered, leaves an empty folder, which goes with the suite's.
 */
import { mkdirSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { findPlace } from '../../src/adapters/process/cgroup-place.js'

let home: string | null = null
let folder: string | null = null

const moveInto = (cgroup: string, pid: number): void => {
  writeFileSync(join(cgroup, 'cgroup.procs'), String(pid))
}

/** The test runner's own workers and services may live a little longer than its tests. */
const moveHome = (from: string, to: string): void => {
  for (const pid of readFileSync(join(from, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean)) {
    try {
      moveInto(to, Number(pid))
    } catch {
      // It is gone by now.
    }
  }
}

export function setup(): void {
  home = findPlace().parent
  if (home === null) return
  folder = join(home, `rw-suite-${randomUUID()}`)
  mkdirSync(folder)
  moveInto(folder, process.pid)
}

export function teardown(): void {
  if (home === null || folder === null) return
  try {
    moveHome(folder, home)
    removeAll(folder)
  } catch (error) {
    // Somebody lives below it: whoever that is, leftovers.global-setup.ts has told.
    console.warn(`a cgroup of the suite is left: ${String(error)}`)
  }
}

function removeAll(cgroup: string): void {
  for (const entry of readdirSync(cgroup, { withFileTypes: true }))
    if (entry.isDirectory()) removeAll(join(cgroup, entry.name))
  rmdirSync(cgroup)
}
