/** Which tier of containment an engine uses (C2). */
import { findPlace } from './adapters/process/cgroup-place.js'
import { createProcessPort } from './adapters/process/process-port.js'
import { withPanes } from './adapters/surface/pane-port.js'
import type { ProcessPort } from './actors/ports.js'
import { RunwardenError } from './errors.js'
import type { ParsedEngineOptions } from './options.js'

export type Tier = 'cgroup' | 'group+marks' | 'group'

/** Weakest first. */
const TIERS: readonly Tier[] = ['group', 'group+marks', 'cgroup']

const refused = (option: string, tier: Tier, why: string): RunwardenError =>
  new RunwardenError('invalid-option', `createEngine: option containment.${option} "${tier}" ${why}`)

/**
 * The best tier to be had, at most the one that is preferred.
 *
 * @throws `invalid-option` where the floor (`atLeast`) cannot be had, saying why.
 */
export const chooseProcesses = ({ containment }: Pick<ParsedEngineOptions, 'containment'>): ProcessPort => {
  const { atLeast, cgroup } = containment
  const prefer = containment.prefer ?? 'cgroup'
  if (atLeast !== undefined && TIERS.indexOf(prefer) < TIERS.indexOf(atLeast))
    throw refused('prefer', prefer, `is less than containment.atLeast "${atLeast}"`)
  if (prefer !== 'cgroup') return withPanes(createProcessPort(prefer))
  const { parent, problem } = findPlace(cgroup.parent)
  if (problem === null)
    return withPanes(createProcessPort('cgroup', { parent, mustBeHeld: atLeast === 'cgroup' }))
  if (atLeast === 'cgroup') throw refused('atLeast', 'cgroup', `cannot be had: ${problem}`)
  return withPanes(createProcessPort('group+marks'))
}
