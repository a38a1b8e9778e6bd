/** One sample of one contender: the job comes as JSON in the first argument, the sample goes out as the last line. */
import type { Params } from './contract.js'
import { workloads } from './workloads.js'

const { id, contender, params } = JSON.parse(process.argv[2] ?? '') as {
  readonly id: string
  readonly contender: string
  readonly params: Params
}
const found = workloads
  .find((workload) => workload.id === id)
  ?.contenders.find(({ name }) => name === contender)
if (found === undefined) throw new Error(`no contender ${contender} of ${id}`)
const sample = await found.run(params)
process.stdout.write(`${JSON.stringify(sample)}\n`, () => {
  // A contender that left something open is measured all the same.
  process.exit(0)
})
