/** All workloads, in the order in which they are measured. */
import type { Workload } from './contract.js'
import { start } from './workloads/b1-start.js'
import { stopAll } from './workloads/b2-stop-all.js'
import { largeFrames, shortFrames } from './workloads/b3-frames.js'
import { idle } from './workloads/b4-idle.js'
import { journal } from './workloads/b5-journal.js'
import { confirm } from './workloads/b6-confirm.js'
import { growth } from './workloads/b8-growth.js'
import { hostile } from './workloads/b9-hostile.js'

export const workloads: readonly Workload[] = [
  start,
  stopAll,
  shortFrames,
  largeFrames,
  idle,
  journal,
  confirm,
  ...growth,
  hostile,
]
