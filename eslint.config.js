// @ts-check
import { existsSync, readdirSync } from 'node:fs'
import eslint from '@eslint/js'
import { createNodeResolver, importX } from 'eslint-plugin-import-x'
import { defineConfig, globalIgnores } from 'eslint/config'
import tseslint from 'typescript-eslint'
import { impureInMachines, layers, signalDoors, testingRoom } from './scripts/layers.js'

// The layer table (scripts/layers.js) says who may import whom and why. This file turns it into rules;
// below it come the rules on how a file is written.

/** @typedef {import('./scripts/layers.js').Layer} Layer */

/** @param {Layer} layer The folders that count as one room each. */
function roomsOf(layer) {
  if (!layer.roomPerSubfolder || !existsSync(layer.folder)) return [layer.folder]
  const subfolders = readdirSync(layer.folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return subfolders.map((entry) => `${layer.folder}/${entry.name}`)
}

const zones = layers.flatMap((layer) =>
  roomsOf(layer).map((room) => ({
    target: `./${room}`,
    from: './src',
    except: [...new Set([room, ...layer.values, ...layer.types])].map((path) => path.replace(/^src\//, './')),
    message: layer.because,
  })),
)

/** The room of simulations is closed to everything else in src/ but its entry, and the entry to everything. */
const testingZones = [
  {
    target: ['./src/!(testing|testing.ts)', './src/!(testing)/**'],
    from: [`./${testingRoom.folder}`, `./${testingRoom.entry}`],
    message: testingRoom.because,
  },
]

/** @param {string} name A module, as a regular expression; it covers subpaths, and `node:` may be left out. */
const moduleNamed = (name) => `^${name.replace(/[/.]/g, '\\$&').replace(/^node:/, '(node:)?')}(/|$)`

/** @param {Layer} layer Packages outside the layer's list, when it has one. */
function packagePatterns(layer) {
  const forbidden = layer.forbidden.map((name) => ({ regex: moduleNamed(name), message: layer.because }))
  if (layer.packages === 'any') return forbidden
  const allowed = layer.packages.map((name) => `(?!${moduleNamed(name).slice(1)})`).join('')
  return [...forbidden, { regex: `^${allowed}[^.]`, message: layer.because }]
}

/**
 * Folders whose types a room may use and whose values it may not. A room in the same folder names its siblings
 * `../sibling/…`; any other room names the folder itself.
 * @param {Layer} layer
 */
function typeOnlyPatterns(layer) {
  return layer.types.map((folder) => ({
    regex:
      folder === layer.folder
        ? '^(\\.\\./)+[^./][^/]*/'
        : `^(\\.\\./)+${folder.replace(/^src\//, '').replace(/\//g, '\\/')}(/|$)`,
    allowTypeImports: true,
    message: layer.because,
  }))
}

const noPrimitives = signalDoors.modules.map((name) => ({
  regex: moduleNamed(name),
  message: signalDoors.because,
}))
const noExeca = { regex: '^execa$', message: signalDoors.because }
const noImportedKill = { name: 'node:process', importNames: ['kill'], message: signalDoors.because }
const noKill = {
  object: 'process',
  property: 'kill',
  message: `${signalDoors.because} (A local called \`process\` hides the global: give it another name.)`,
}

/**
 * One flat-config block. ESLint replaces a rule's options where blocks overlap, so each block below states
 * its import restrictions whole.
 * @param {string} folder
 * @param {readonly object[]} patterns
 * @param {{ mayExeca?: boolean, maySignal?: boolean }} [doors]
 */
function importBlock(folder, patterns, { mayExeca = false, maySignal = false } = {}) {
  const signals = maySignal ? [] : [...noPrimitives, ...(mayExeca ? [] : [noExeca])]
  /** @type {import('eslint').Linter.Config} */
  const block = {
    files: [`${folder}/**/*.ts`],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        { paths: maySignal ? [] : [noImportedKill], patterns: [...patterns, ...signals] },
      ],
      'no-restricted-properties': maySignal ? 'off' : ['error', noKill],
    },
  }
  return block
}

const adapters = layers.find((layer) => layer.folder === 'src/adapters')
const adapterPatterns = adapters ? [...packagePatterns(adapters), ...typeOnlyPatterns(adapters)] : []

const layerRules = defineConfig(
  importBlock('src', []),
  layers.map((layer) => importBlock(layer.folder, [...packagePatterns(layer), ...typeOnlyPatterns(layer)])),
  signalDoors.execaRooms.map((room) => importBlock(room, adapterPatterns, { mayExeca: true })),
  signalDoors.rooms.map((room) => importBlock(room, adapterPatterns, { maySignal: true })),
  {
    files: ['src/**/*.ts'],
    rules: { 'import-x/no-restricted-paths': ['error', { zones: [...zones, ...testingZones] }] },
  },
  {
    files: ['src/machines/**/*.ts'],
    rules: {
      'no-restricted-globals': [
        'error',
        ...impureInMachines.globals.map((name) => ({ name, message: impureInMachines.because })),
      ],
      'no-restricted-properties': [
        'error',
        noKill,
        ...impureInMachines.properties.map((entry) => ({ ...entry, message: impureInMachines.because })),
      ],
    },
  },
)

/** Files that tools load by their default export. */
const loadedByDefaultExport = [
  '*.config.{js,ts}',
  'test/support/*-reporter.ts',
  'test/support/*.global-setup.ts',
]

export default defineConfig(
  globalIgnores(['dist/', '.bench/', '.sim/', 'coverage/', 'statecharts/', 'test/fixtures/frames/']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  eslint.configs.recommended,
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { 'import-x': importX },
    settings: {
      'import-x/parsers': { '@typescript-eslint/parser': ['.ts'] },
      'import-x/resolver-next': [
        createNodeResolver({
          extensions: ['.ts', '.js', '.mjs', '.json'],
          // Sources name each other by what they become: './run.js' is run.ts here.
          extensionAlias: { '.js': ['.ts', '.js'] },
        }),
      ],
    },
    rules: {
      // Promises: the one thing a supervisor may not lose track of.
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],

      // A port's fake answers at once what the real adapter awaits: both are async by type.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unnecessary-condition': [
        'error',
        { allowConstantLoopConditions: 'only-allowed-literals' },
      ],
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrorsIgnorePattern: '^_' },
      ],

      // Types leave no trace at run time, and the imports say so.
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'separate-type-imports' }],
      '@typescript-eslint/consistent-type-exports': 'error',
      '@typescript-eslint/no-import-type-side-effects': 'error',

      // No package imports us back: to follow them costs half a minute.
      'import-x/no-cycle': ['error', { ignoreExternal: true }],
      'import-x/no-self-import': 'error',
      'import-x/no-default-export': 'error',
      'no-restricted-syntax': [
        'error',
        {
          selector: 'ExportAllDeclaration',
          message: 'Name what you export: a door that opens by itself is not a door.',
        },
      ],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-implicit-coercion': ['error', { boolean: false }],
    },
  },
  layerRules,
  {
    files: ['test/**/*.test.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          name: 'node:timers/promises',
          importNames: ['setTimeout'],
          message:
            'A test does not sleep: wait for a condition, with a deadline, or step the simulated clock.',
        },
      ],
    },
  },
  { files: loadedByDefaultExport, rules: { 'import-x/no-default-export': 'off' } },
  {
    // Plain JavaScript carries no types: the rules that follow an `any` would only report its absence.
    files: ['**/*.{js,mjs}'],
    languageOptions: { globals: nodeGlobals() },
    rules: {
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/restrict-template-expressions': 'off',
      '@typescript-eslint/restrict-plus-operands': 'off',
      '@typescript-eslint/no-unnecessary-condition': 'off',
    },
  },
)

/** What Node 20 offers without an import, for `no-undef` (TypeScript checks it by itself in .ts files). */
function nodeGlobals() {
  const names = Object.getOwnPropertyNames(globalThis)
  return Object.fromEntries(names.map((name) => [name, /** @type {const} */ ('readonly')]))
}
