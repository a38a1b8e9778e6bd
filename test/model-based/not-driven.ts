/** Transitions that no run of the suite drives on real processes, and why. */
const REASONS: readonly (readonly [RegExp, string])[] = []

export const reasonFor = (transition: string): string | null =>
  REASONS.find(([pattern]) => pattern.test(transition))?.[1] ?? null
