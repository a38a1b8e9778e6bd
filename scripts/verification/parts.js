// @ts-check
/** What is measured for docs/verification.md: a command that anyone can give, and which lines of what it prints are kept. */

/** @typedef {{ part: string, command: string, keeps: RegExp, env?: Record<string, string> }} Part */

/** @type {readonly Part[]} */
export const parts = [
  {
    part: 'exploration',
    command: 'npx vitest run test/machines',
    keeps: /states, |^mutants of|killed by: |\d+ passed/,
  },
  {
    part: 'real',
    command: 'npx vitest run test/model-based',
    keeps: /edges covered|not driven|\d+ passed/,
  },
  { part: 'simulator', command: 'npm run sim -- --seed 1 --runs 3000', keeps: /^simulated: / },
  {
    part: 'crashes',
    command: 'RUNWARDEN_CRASH_STRIDE=1 npx vitest run test/sim/every-crash.test.ts',
    keeps: / crashes$|\d+ passed/,
  },
]
