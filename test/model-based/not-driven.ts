/** Transitions that no course drives on real processes, or that a race decides, and why. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/: run\.lost/, 'nothing posts it: recovery lets the process actor find out, which says process.gone'],
  [/: run\.faulted/, 'needs a chart that throws'],
  [
    /signal-failed|freeze-failed/,
    'needs a process that may not be signalled: test/engine/unconfirmed, pause',
  ],
  [/accepted: person\.asked/, 'a question is progress, which is told before it'],
  [
    /active: (process\.launch|session)-?\.?failed/,
    'an agent that has shown progress was launched, and its session begun',
  ],
  [
    /waiting: (run\.pause|run\.resume|intent\.recorded)/,
    'the registry admits in the tick of the record, before a host can hear of it',
  ],
  [
    /launching: process\.gone/,
    'needs an engine that dies between commit and spawn: test/e2e/engine-killed, test/sim/every-crash',
  ],
  [/frozen: execution\.dismissed/, 'a watchdog stands still while it is frozen, and exit graces do too'],
  [/: run\.suppress \[isForcedNow\]/, 'no door of the host forces a shutdown'],
  [/asking: run\.terminate/, 'an agent is asked for open work only, which terminate leaves alone'],
  [
    /(asking|term-sent): intent\.recorded/,
    'the forced order itself takes the same step, in the same transaction',
  ],
  [
    /unconfirmed: intent\.recorded/,
    'an order over what is unconfirmed takes the same step before its intent is raised',
  ],
  [/kill-sent: process\.survived/, "the chart's own timer has the same deadline and comes first"],
  [
    /(kill-sent|unconfirmed): process\.exited/,
    'a race: the leader must be reaped before its children, by the same signal',
  ],
  [/unconfirmed: process\.(gone|survived)/, 'a race: the tree must go between two kills'],
  [/retrying: delivery\.acknowledged/, 'an answer of the host behind its deadline changes nothing'],
  [
    /draining: order\.settled/,
    'a race: the order must settle between the last proof and the closed registry',
  ],
  [
    /isExitUnseen|isUnseenAndWell|finishing: tree\.confirmed/,
    'only of a run that another engine has adopted: test/engine/survival, test/e2e/kill-matrix',
  ],
  [/registry\.recovering: (order|registry\.close)/, 'no host has the engine before it is open'],
]

export const reasonFor = (transition: string): string | null =>
  REASONS.find(([pattern]) => pattern.test(transition))?.[1] ?? null
