/**
 * The suite runs in a cgroup of its own, where it may make one. Engines make theirs below their own: a test whose run is to be left alone,
 * or whose engine is killed and not recovered, leaves an empty folder, which goes with the suite's.
 */
import { mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { findPlace } from '../../src/adapters/process/cgroup-place.js'

let home: string | null = null
let folder: string | null = null

const enter = (cgroup: string): void => {
  writeFileSync(join(cgroup, 'cgroup.procs'), String(process.pid))
}

export function setup(): void {
  home = findPlace().parent
  if (home === null) return
  folder = join(home, `rw-suite-${randomUUID()}`)
  mkdirSync(folder)
  enter(folder)
}

export function teardown(): void {
  if (home === null || folder === null) return
  enter(home)
  try {
    removeAll(folder)
  } catch (error) {
    // Somebody lives in it: whoever that is, leftovers.global-setup.ts has told.
    console.warn(`a cgroup of the suite is left: ${String(error)}`)
  }
}

function removeAll(cgroup: string): void {
  for (const entry of readdirSync(cgroup, { withFileTypes: true }))
    if (entry.isDirectory()) removeAll(join(cgroup, entry.name))
  rmdirSync(cgroup)
}
