// @ts-check
/** Looks at /proc until none of the processes that it is told on stdin is left, or the deadline has passed; says when. */
import { readFileSync } from 'node:fs'

const deadlineMs = Number(process.argv[2])
const nowMs = () => Number(process.hrtime.bigint()) / 1e6

/** @param {number} pid */
const isRunning = (pid) => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return !['Z', 'X'].includes(stat.charAt(stat.lastIndexOf(')') + 2))
  } catch {
    // Gone.
    return false
  }
}

let given = ''
for await (const chunk of process.stdin) given += chunk
/** @type {number[]} */
let pids = JSON.parse(given)
process.stdout.write('watching\n')
const endMs = nowMs() + deadlineMs
while (pids.length > 0 && nowMs() < endMs) {
  pids = pids.filter(isRunning)
  // A look at the last few is enough to know that it is not over yet, and leaves the machine to those who work.
  if (pids.length > 0) await new Promise((resolve) => setTimeout(resolve, 2))
}
process.stdout.write(JSON.stringify({ atMs: nowMs(), left: pids.length }))
