/**
 * How long a property is looked at, and from which seed: `RUNWARDEN_SEED`, and a variable that names the number of scripts,
 * `RUNWARDEN_PROPERTY_RUNS` where the property has none of its own. Both are printed, and a failure prints its seed and path.
 */
export function propertyParameters(
  runs: number,
  ownBudget = 'RUNWARDEN_PROPERTY_RUNS',
): { readonly numRuns: number; readonly seed: number } {
  const { [ownBudget]: own, RUNWARDEN_PROPERTY_RUNS: common, RUNWARDEN_SEED: given } = process.env
  const numRuns = Number(own ?? common ?? runs)
  // As fast-check picks one when it is not given any.
  const seed = Number(given ?? Date.now() ^ (Math.random() * 0x100000000))
  process.stdout.write(`${String(numRuns)} scripts, RUNWARDEN_SEED=${String(seed)}\n`)
  return { numRuns, seed }
}
