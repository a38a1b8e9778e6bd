/**
 * The run chart: three regions that answer three questions about one run. They are apart because the answers differ in time: work can
 * be settled while its process is still being ended, and a failed kill must not touch a settled outcome (INV-3, INV-15).
 */
import { initialRunContext } from './run.context.js'
import { deliveryRegion } from './run.delivery.js'
import { processRegion } from './run.process.js'
import { runSetup } from './run.setup.js'
import { workRegion } from './run.work.js'

/** Raised with every change that an old snapshot could not be read after. */
export const RUN_MACHINE_VERSION = 1

export const runMachine = runSetup.createMachine({
  id: 'run',
  version: String(RUN_MACHINE_VERSION),
  description: 'One run: what became of its work, what is left of its process, and whether the host knows.',
  type: 'parallel',
  context: ({ input }) => initialRunContext(input),
  states: { work: workRegion, process: processRegion, delivery: deliveryRegion },
  options: { maxIterations: 1000 },
})

export type RunMachine = typeof runMachine
