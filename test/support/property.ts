/** How long a property is looked at, and from which seed: `RUNWARDEN_PROPERTY_RUNS`, `RUNWARDEN_SEED`. A failure prints its seed. */
export function propertyParameters(runs: number): { readonly numRuns: number; readonly seed?: number } {
  const { RUNWARDEN_PROPERTY_RUNS: wanted, RUNWARDEN_SEED: seed } = process.env
  return { numRuns: Number(wanted ?? runs), ...(seed === undefined ? {} : { seed: Number(seed) }) }
}
