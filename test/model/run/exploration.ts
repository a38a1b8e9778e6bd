/** The explorations of the run chart that the tests ask: which policies, which worlds, and the checks that hold in each. */
import { explore } from '../explorer.js'
import type { ExploreOptions } from '../explorer.js'
import { attemptChecks } from './checks/attempts.js'
import type { RunCheck } from './checks/check.js'
import { intents } from './checks/intents.js'
import { invariants } from './checks/invariants.js'
import { ladder } from './checks/ladder.js'
import { turnChecks } from './checks/turns.js'
import type { RunExploration } from './liveness.js'
import { runModel } from './model.js'
import type { Features, RunModel, RunModelOptions } from './model.js'
import type { Mode } from './offers.js'

const MAX_STATES = 20_000

const PLAIN: Features = {
  isInteractive: false,
  isDriven: false,
  hasPrompt: false,
  candidates: 1,
  canAsk: false,
  hasFinalize: false,
  hasDeliver: false,
  isTimeLimited: false,
}
const DRIVEN: Features = { ...PLAIN, isDriven: true, hasPrompt: true }
const INTERACTIVE: Features = { ...DRIVEN, isInteractive: true }

/** Each feature on and off; one-shot and interactive, driven or not, with and without a first prompt and a second candidate. */
export const POLICIES: Readonly<Record<string, Features>> = {
  'one-shot, both hooks': { ...PLAIN, hasFinalize: true, hasDeliver: true },
  'one-shot, fallback, time limit': { ...PLAIN, candidates: 2, isTimeLimited: true },
  'one-shot, driven, fallback, ask': { ...DRIVEN, candidates: 2, canAsk: true },
  'one-shot, prompt to come, fallback': { ...DRIVEN, hasPrompt: false, candidates: 2 },
  'interactive, ask, deliver hook, time limit': {
    ...INTERACTIVE,
    canAsk: true,
    hasDeliver: true,
    isTimeLimited: true,
  },
  'interactive, prompt to come, fallback, finalize hook': {
    ...INTERACTIVE,
    hasPrompt: false,
    candidates: 2,
    hasFinalize: true,
  },
}

export const featuresOf = (name: string): Features => {
  const features = POLICIES[name]
  if (features === undefined) throw new Error(`no policy is called ${name}`)
  return features
}

/** In a world without law only the invariants are promised. */
export const checksOf = (mode: Mode): readonly RunCheck[] =>
  mode === 'anything' ? invariants : [...invariants, ...intents, ...ladder, ...turnChecks, ...attemptChecks]

export const modelOf = (
  mode: Mode,
  name: string,
  features: Features,
  options: Partial<RunModelOptions> = {},
): RunModel =>
  runModel({ name: `run (${mode}; ${name})`, features, mode, checks: checksOf(mode), ...options })

export const exploreRun = (model: RunModel, options: Partial<ExploreOptions> = {}): RunExploration =>
  explore(model, { maxStates: MAX_STATES, ...options })

/** The worlds without law that are explored: of each feature one that is on, and one that is off. */
const LAWLESS = ['one-shot, both hooks', 'interactive, prompt to come, fallback, finalize hook']

export const exploreLawless = (): readonly RunExploration[] =>
  Object.entries(POLICIES)
    .filter(([name]) => LAWLESS.includes(name))
    .map(([name, features]) => exploreRun(modelOf('anything', name, features)))
