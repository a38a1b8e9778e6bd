/**
 * Region `process`: what is left of the current attempt's execution on this machine?
 *
 * Owns: the ladder (ask, TERM, KILL, retry) and the evidence that ends it.
 * Does not own: the outcome. A slow or failed teardown never touches it (INV-15).
 * Messages in: `intent.recorded` and `execution.dismissed` from the work region, the process actor's facts, repeated and forced commands.
 * Messages out: `tree.confirmed`.
 * Invariants: INV-4 (only evidence leaves the ladder), INV-5, INV-8.
 */
import { runSetup } from './run.setup.js'

const GONE = '#run.process.gone'
const TERM = '#run.process.term-sent'
const KILL = '#run.process.kill-sent'

const ofExecution = ({ context }: { context: { executionAttempt: number } }) => ({
  attempt: context.executionAttempt,
})

const gone = {
  'process.gone': { guard: 'isCurrentExecution', target: GONE, actions: 'noteEvidence' },
  'run.lost': { target: GONE, actions: 'noteEvidence' },
} as const

/** In the ladder a leader's exit is noted, and only an empty tree ends the ladder. */
const exitInLadder = [
  { guard: 'isTreeEmpty', target: GONE, actions: ['noteExit', 'noteEvidence'] },
  { guard: 'isCurrentExecution', actions: 'noteExit' },
] as const

const freezeRequest = {
  'run.pause': { guard: 'hasNoIntent', actions: 'noteFreeze' },
  'run.resume': { guard: 'mayThaw', actions: 'clearFreeze' },
} as const

/** The ladder's first step, by what the intent allows. */
const intentOnLiveTree = {
  'intent.recorded': [
    { guard: 'isIntentForced', target: KILL },
    { guard: 'isIntentAskable', target: '#run.process.asking' },
    { target: TERM },
  ],
} as const

const signalError = {
  'process.signal-failed': { guard: 'isCurrentExecution', actions: 'noteSignalError' },
} as const

const exitOfLiveTree = [
  { guard: 'isTreeEmpty', target: GONE, actions: ['noteExit', 'noteEvidence'] },
  // L2: the outcome is decided on exit; what the leader left behind is swept by the same ladder.
  { guard: 'hasMembersLeft', target: TERM, actions: 'noteExit' },
] as const

/** K18: a forced order upgrades a graceful ladder; nothing downgrades a forced one. */
const upgrade = {
  'run.cancel': { guard: 'isForcedNow', target: KILL },
  'run.interrupt': { guard: 'isForcedNow', target: KILL },
  'run.suppress': { guard: 'isForcedNow', target: KILL },
  'run.terminate': { guard: 'isForcedNow', target: KILL },
  'intent.recorded': { guard: 'isIntentForced', target: KILL },
} as const

export const processRegion = runSetup.createStateConfig({
  description: "What is left of the attempt's process tree on this machine?",
  initial: 'waiting',
  states: {
    waiting: {
      description: 'The attempt is not launched yet; the registry is asked to admit it.',
      entry: { type: 'admission.request', params: ({ context }) => ({ attempt: context.attempt }) },
      on: {
        ...freezeRequest,
        'run.admitted': [
          // O15: the time of all attempts is one.
          { guard: 'isTimeLimitDue', target: 'launching', actions: 'armTimeLimit' },
          { guard: 'hasNoIntent', target: 'launching' },
        ],
        // P5: nothing was spawned, and nothing will be.
        'intent.recorded': { target: 'confirmed', actions: 'noteNeverLaunched' },
        'run.lost': { target: 'confirmed', actions: 'noteNeverLaunched' },
      },
    },
    launching: {
      description: 'The execution is recorded; its process is being started.',
      entry: ['takeExecution', { type: 'process.launch', params: ofExecution }],
      on: {
        ...freezeRequest,
        'run.lost': gone['run.lost'],
        'process.gone': gone['process.gone'],
        // P4: an intent that came during the launch is answered as soon as there is a process.
        'process.launched': [
          { guard: 'isForcedIntentAtLaunch', target: 'kill-sent' },
          { guard: 'isIntentAtLaunch', target: 'term-sent' },
          { guard: 'isFreezeAtLaunch', target: 'frozen' },
          { guard: 'isCurrentExecution', target: 'alive' },
        ],
        'process.launch-failed': { guard: 'isCurrentExecution', target: 'gone', actions: 'noteEvidence' },
      },
    },
    alive: {
      description: 'The leader runs.',
      entry: 'noteLaunched',
      on: {
        ...gone,
        ...intentOnLiveTree,
        ...signalError,
        'process.exited': exitOfLiveTree,
        'execution.dismissed': { target: TERM },
        'run.pause': { target: 'frozen', actions: 'noteFreeze' },
      },
    },
    frozen: {
      description: 'Every process of the tree is being stopped, and kept so; the grace window runs.',
      entry: ['noteLaunched', { type: 'process.freeze', params: ofExecution }],
      on: {
        ...gone,
        ...intentOnLiveTree,
        ...signalError,
        'process.exited': exitOfLiveTree,
        'execution.dismissed': { target: TERM },
        'process.frozen': { guard: 'isCurrentExecution', actions: 'noteFrozen' },
        'process.freeze-failed': { guard: 'isCurrentExecution', actions: 'noteFreezeFailed' },
        'run.pause': { actions: 'noteFreeze' },
        'run.resume': {
          guard: 'mayThaw',
          target: 'alive',
          actions: ['clearFreeze', { type: 'process.thaw', params: ofExecution }],
        },
      },
      // O2: TERM in the same transition, whatever the agent could be asked: the ladder has its fixed length.
      after: { pauseGrace: { target: 'term-sent', actions: 'raiseGraceOver' } },
    },
    asking: {
      description: 'The agent was asked to end by its own means.',
      // A stopped agent cannot answer. Where nothing was stopped, nothing is continued.
      entry: [
        { type: 'process.thaw', params: ofExecution },
        { type: 'process.ask', params: ofExecution },
      ],
      on: {
        ...gone,
        ...upgrade,
        'process.exited': exitOfLiveTree,
      },
      after: { askGrace: { target: 'term-sent' } },
    },
    'term-sent': {
      description: 'TERM and CONT went to the whole tree. Only an empty tree stops the timer.',
      entry: { type: 'process.terminate', params: ofExecution },
      on: {
        ...gone,
        ...upgrade,
        ...signalError,
        'process.exited': exitInLadder,
      },
      after: { termGrace: { target: 'kill-sent' } },
    },
    'kill-sent': {
      description: 'KILL goes to every member until none is left.',
      entry: {
        type: 'process.kill',
        params: ({ context }) => ({
          attempt: context.executionAttempt,
          deadlineMs: context.policy.killGraceMs,
        }),
      },
      on: {
        ...gone,
        ...signalError,
        'process.exited': exitInLadder,
        'process.survived': {
          guard: 'isCurrentExecution',
          target: 'unconfirmed',
          actions: 'noteSurvivors',
        },
      },
      after: { killGrace: { target: 'unconfirmed' } },
    },
    unconfirmed: {
      description: 'The tree outlived its deadline: survivors are named and the kill is repeated.',
      entry: 'countRetry',
      on: {
        ...gone,
        'process.exited': exitInLadder,
        'process.survived': { guard: 'isCurrentExecution', actions: 'noteSurvivors' },
        'run.cancel': { target: 'kill-sent' },
        'run.interrupt': { target: 'kill-sent' },
        'run.terminate': { target: 'kill-sent' },
        'intent.recorded': { target: 'kill-sent' },
      },
      after: { unconfirmedRetry: { target: 'kill-sent' } },
    },
    gone: {
      description: 'The tree of this attempt is proven gone.',
      entry: { type: 'process.release', params: ofExecution },
      always: [{ guard: 'isAttemptDue', target: 'waiting' }, { target: 'confirmed' }],
    },
    confirmed: {
      type: 'final',
      description: 'Evidence of every attempt is recorded; nothing of the run is left on the machine.',
      entry: 'announceTreeConfirmed',
    },
  },
})
