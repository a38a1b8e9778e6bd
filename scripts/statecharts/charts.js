// @ts-check
/**
 * Which machines are drawn, and where each is found below `machines/`.
 */

/**
 * @typedef {object} Loaded
 * @property {import('xstate').AnyStateMachine} machine
 * @property {(eventType: string) => boolean} [isInternal]
 *
 * @typedef {(path: string) => Promise<any>} Import   Imports a module by its path below `machines/`.
 * @typedef {{ name: string, load: (from: Import) => Promise<Loaded> }} Chart
 */

/** @type {readonly [Chart, ...Chart[]]} */
export const charts = [
  {
    name: 'run',
    load: async (from) => {
      const { runMachine } = await from('run/run.machine.js')
      const { isInternalEvent } = await from('run/run.events.js')
      return { machine: runMachine, isInternal: isInternalEvent }
    },
  },
  {
    name: 'stop-order',
    load: async (from) => ({ machine: (await from('stop-order/stop-order.machine.js')).stopOrderMachine }),
  },
  {
    name: 'registry',
    load: async (from) => ({ machine: (await from('registry/registry.machine.js')).registryMachine }),
  },
  {
    name: 'job',
    load: async (from) => ({ machine: (await from('job/job.machine.js')).jobMachine }),
  },
]

/** @param {string} name */
export const chartNamed = (name) => charts.find((chart) => chart.name === name)
