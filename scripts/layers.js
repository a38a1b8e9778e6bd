// @ts-check
/**
 * The layer table: who may import whom, as data.
 *
 * Owns: the rooms of src/, what each may import, and why.
 * Does not own: enforcement. `eslint.config.js` turns the table into lint rules; `test/tidy.test.ts` checks
 * it again with a scan of its own, so a hole in a lint rule does not open a door.
 */

/**
 * @typedef {object} Layer
 * @property {string} folder           The room, from the repository's root.
 * @property {boolean} roomPerSubfolder Each subfolder is a room of its own: siblings do not see each other.
 * @property {readonly string[]} values Files and folders importable for their values and types, besides the room itself.
 * @property {readonly string[]} types  Files and folders importable with `import type` only.
 * @property {readonly string[] | 'any'} packages Packages and `node:` modules importable, or 'any'.
 * @property {readonly string[]} forbidden Packages and `node:` modules never importable here.
 * @property {string} because          The reason, shown as the lint message.
 */

/** The package's public entry files: what a host app can import, and therefore what our own CLI can. */
export const publicEntries = [
  'src/index.ts',
  'src/doctor.ts',
  'src/sqlite.ts',
  'src/postgres.ts',
  'src/protocols.ts',
  'src/jobs.ts',
  'src/testing.ts',
  'src/inspector.ts',
]

/**
 * Simulations are for tests: nothing that runs in production reaches them, and they need no test runner.
 * The room is open to its entry file, and that one to nobody in src/.
 */
export const testingRoom = {
  folder: 'src/testing',
  entry: 'src/testing.ts',
  because:
    'Simulations are for the tests of a host and of this project: no other code of src/ may depend on them.',
}

/** What a program on top of the library may import of it. */
const productEntries = publicEntries.filter((entry) => entry !== testingRoom.entry)

/** @type {readonly Layer[]} */
export const layers = [
  {
    folder: 'src/machines',
    roomPerSubfolder: true,
    values: [],
    types: ['src/machines'],
    packages: ['xstate'],
    forbidden: [],
    because:
      'A machine is pure: it imports xstate and the types of other machines, so that it can be explored exhaustively, drawn, and replayed.',
  },
  {
    folder: 'src/actors',
    roomPerSubfolder: false,
    values: ['src/machines', 'src/errors.ts'],
    types: [],
    packages: 'any',
    forbidden: ['node:fs', 'better-sqlite3', 'kysely'],
    because:
      'Actors own decisions and reach the world through actors/ports.ts only, so that the same actors run simulated and real.',
  },
  {
    folder: 'src/adapters',
    roomPerSubfolder: true,
    values: [
      'src/actors/ports.ts',
      'src/actors/store.ports.ts',
      'src/actors/spool.ports.ts',
      'src/actors/job.ports.ts',
      'src/actors/pane.ports.ts',
      'src/actors/guardian.ports.ts',
      'src/actors/workspace.ports.ts',
      'src/errors.ts',
    ],
    types: ['src/machines'],
    packages: 'any',
    forbidden: [],
    because:
      'An adapter carries out effects for one technology behind actors/ports.ts; it decides nothing, and does not know its siblings.',
  },
  {
    folder: 'src/cli',
    roomPerSubfolder: false,
    // What src/protocols.ts shows of it, without loading the protocols for every --help.
    values: [...productEntries, 'src/protocol-names.ts'],
    types: [],
    packages: 'any',
    forbidden: [],
    because:
      'The command line is an ordinary host app: it uses the public entry files, so what it can do, a host app can do.',
  },
  {
    folder: 'src/inspector',
    roomPerSubfolder: false,
    values: productEntries,
    types: [],
    packages: 'any',
    forbidden: [],
    because:
      'The inspector is an ordinary host app: it uses the public entry files and acts on runs through them.',
  },
  {
    folder: 'src/testing',
    roomPerSubfolder: false,
    values: [
      'src/actors',
      'src/adapters/protocol',
      'src/adapters/store',
      'src/engine.ts',
      'src/errors.ts',
      'src/open-engine.ts',
      'src/option-types.ts',
      'src/options.ts',
      'src/protocols.ts',
    ],
    types: [],
    packages: 'any',
    forbidden: ['vitest', 'fast-check'],
    because:
      'A simulation puts the real engine over simulated ports. It runs under any test runner, and reaches no process.',
  },
]

/**
 * Modules through which a process can be started or signalled, and the only rooms that may import them (INV-2).
 * `process.kill` belongs to the first list too.
 */
export const signalDoors = {
  rooms: ['src/adapters/process'],
  modules: ['node:child_process', 'koffi'],
  /** execa also runs programs that are no agents (tmux, git), to their end, in these rooms. */
  execaRooms: ['src/adapters/process', 'src/adapters/surface', 'src/adapters/workspace'],
  because:
    'INV-2: only the process actor signals an execution, through src/adapters/process; no other code can reach a signal or a spawn.',
}

/** What a machine must not touch: the same event in the same state gives the same result, today and on replay. */
export const impureInMachines = {
  globals: ['Date', 'performance', 'crypto', 'process', 'setTimeout', 'setInterval', 'setImmediate'],
  properties: [{ object: 'Math', property: 'random' }],
  because:
    'Machines are pure: time and ids come in with the event; delays are named and kept by the actor host.',
}
