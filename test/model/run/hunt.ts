/** The search for a claim that a planted fault breaks. */
import { runMachine } from '../../../src/machines/run/run.machine.js'
import type { Violation } from '../explorer.js'
import { ROBUST } from '../explorer.js'
import { isSame } from './checks/check.js'
import { exploreRun, featuresOf, modelOf, POLICIES } from './exploration.js'
import type { RunModel } from './model.js'
import type { Mutant } from './mutants.js'
import type { RunEdge } from './node.js'
import { restored, resultOf } from './restored.js'
import type { Use, Uses } from './uses.js'

/**
 * `killed`: a claim broke. `never used`: no event of a legal world meets the faulty part. `no difference`: on every edge of the whole
 * exploration it does what the chart does. `survived`: it does something else, and no claim minds.
 */
export type Fate = 'killed' | 'never used' | 'no difference' | 'survived'

export interface Verdict {
  readonly mutant: string
  readonly fate: Fate
  readonly killer: Violation | null
}

/** The faulty chart under each policy, made when it is asked for. */
type Models = (policy: string) => RunModel

const modelsOf = ({ machine, lostEffect }: Mutant, checks?: RunModel['checks']): Models => {
  const options = { machine: machine(), lostEffect, ...(checks === undefined ? {} : { checks }) }
  const made = new Map<string, RunModel>()
  return (policy) => {
    const model = made.get(policy) ?? modelOf('legal', policy, featuresOf(policy), options)
    made.set(policy, model)
    return model
  }
}

const judge = (
  model: RunModel,
  edge: RunEdge,
): { readonly id: string; readonly claim: string } | undefined => {
  const { type } = edge.offer.event
  const isChanged = edge.after !== edge.before
  return model.checks.find(
    ({ on, holds }) => (on === 'change' ? isChanged : on.includes(type)) && !holds(edge),
  )
}

/** The first claim broken on one path; null where none is, or where the faulty chart leaves the path. */
const walk = (model: RunModel, path: readonly string[]): Violation | null => {
  let node = model.initial
  for (const [index, label] of path.entries()) {
    const offer = model.offersAt(node).find((offered) => offered.label === label)
    if (offer === undefined) return null
    const violation = { path: path.slice(0, index + 1), state: model.keyOf(node), count: 1 }
    try {
      const edge = model.take(node, offer)
      const broken = judge(model, edge)
      if (broken !== undefined) return { ...violation, id: broken.id, claim: broken.claim }
      node = edge.after
    } catch (error) {
      return { ...violation, id: ROBUST, claim: String(error) }
    }
  }
  return null
}

const tryUses = (models: Models, uses: readonly Use[]): Violation | null => {
  for (const { policy, path } of uses) {
    const violation = walk(models(policy), path())
    if (violation !== null) return violation
  }
  return null
}

/** Those first under which the faulty part is used. */
const policiesFor = ({ uses }: Mutant): readonly string[] => [
  ...new Set([...(uses ?? []).map(({ policy }) => policy), ...Object.keys(POLICIES)]),
]

const exploreAll = (models: Models, policies: readonly string[]): Violation | null => {
  for (const policy of policies) {
    const [violation] = exploreRun(models(policy), { stopAt: () => true }).violations
    if (violation !== undefined) return violation
  }
  return null
}

/** Whether the faulty chart begins as the chart does, and does the same on every edge that can meet the fault. Then it reaches the same nodes, too. */
const isNoDifferent = (mutant: Mutant, models: Models, { explorations }: Uses): boolean => {
  const isSameIn = (policy: string): boolean => {
    const nodes = explorations.get(policy)?.nodes ?? []
    const faulty = models(policy)
    const right = modelOf('legal', policy, featuresOf(policy))
    const machine = mutant.machine()
    if (right.keyOf(right.initial) !== faulty.keyOf(faulty.initial)) return false
    return nodes.every((node) => {
      const offers = right.offersAt(node).filter(({ event }) => mutant.concerns(node, event.type))
      if (offers.length === 0) return true
      const [original, copy] = [restored(node, runMachine), restored(node, machine)]
      return offers.every((offer) =>
        isSame(resultOf(faulty.take(copy, offer)), resultOf(right.take(original, offer))),
      )
    })
  }
  return policiesFor(mutant).every(isSameIn)
}

/** Kills with the checks given, or with all. */
export const hunt = (mutant: Mutant, uses: Uses, checks?: RunModel['checks']): Verdict => {
  const verdict = (fate: Fate, killer: Violation | null = null): Verdict => ({
    mutant: mutant.name,
    fate,
    killer,
  })
  if (mutant.uses?.length === 0) return verdict('never used')
  const models = modelsOf(mutant, checks)
  const found = tryUses(models, mutant.uses ?? [])
  if (found !== null) return verdict('killed', found)
  if (mutant.uses !== null && isNoDifferent(mutant, models, uses)) return verdict('no difference')
  const late = exploreAll(models, policiesFor(mutant))
  return late === null ? verdict('survived') : verdict('killed', late)
}
