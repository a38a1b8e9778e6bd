// @ts-check
/**
 * `npm run mutate`: takes one thing away at a time, and asks whether anything notices.
 *
 *   --kind awaits   each `await` of the host's own code that stands for an order of things (src/actors, src/engine.ts)
 *   --kind guards   each guard of the four charts, which then always says yes
 *   --kind exits    each early way out of the host's own code: `if (…) return`, `continue`, `throw`
 *   --only TEXT     only mutants whose name has TEXT in it
 *   --from N --every M   every M-th one, from the N-th on
 *   --runs N        how long the simulator looks (default 1500 runs)
 *   --suites none|simulated|all   which suites are asked behind the simulator (default all)
 *   --out FILE      where the verdicts go as lines of JSON (default: mutants.ndjson below the temporary folder)
 *
 * Each mutant is made in a copy of the tree: first the simulator plays there, then the suites that are next to what was changed.
 * Not for CI: it takes minutes a mutant where nothing notices at once.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import ts from 'typescript'

const root = resolve(import.meta.dirname, '..')
const { values } = parseArgs({
  options: {
    kind: { type: 'string', default: 'awaits' },
    only: { type: 'string', default: '' },
    from: { type: 'string', default: '0' },
    every: { type: 'string', default: '1' },
    runs: { type: 'string', default: '1500' },
    suites: { type: 'string', default: 'all' },
    out: { type: 'string', default: join(tmpdir(), 'mutants.ndjson') },
  },
})

/** @typedef {{ path: string, line: number, name: string, from: number, to: number, text: string }} Mutant */

const git = (/** @type {string[]} */ ...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' })
const filesBelow = (/** @type {string} */ folder) =>
  git('ls-files', '--', folder)
    .split('\n')
    .filter((path) => path.endsWith('.ts'))

/** @param {string} path @returns {ts.SourceFile} */
const parse = (path) =>
  ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.ES2022, true)

/** @param {ts.Node} node @returns {Generator<ts.Node>} */
function* nodesOf(node) {
  yield node
  /** @type {ts.Node[]} */
  const children = []
  ts.forEachChild(node, (child) => void children.push(child))
  for (const child of children) yield* nodesOf(child)
}

/** @param {ts.SourceFile} file @param {ts.Node} node @param {string} text @returns {Mutant} */
const mutantOf = (file, node, text) => {
  const line = file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1
  const shown = node.getText(file).replace(/\s+/g, ' ').slice(0, 70)
  return {
    path: file.fileName,
    line,
    name: `${file.fileName}:${String(line)} ${shown}`,
    from: node.getStart(file),
    to: node.getEnd(),
    text,
  }
}

const HOST = ['src/actors', 'src/engine.ts']

/** An await whose value is used cannot be left out: only those that stand for an order. @returns {Mutant[]} */
const awaits = () =>
  HOST.flatMap(filesBelow).flatMap((path) => {
    const file = parse(path)
    return [...nodesOf(file)].flatMap((node) =>
      ts.isAwaitExpression(node) && ts.isExpressionStatement(node.parent)
        ? [mutantOf(file, node, `void (${node.expression.getText(file)})`)]
        : [],
    )
  })

/** @returns {Mutant[]} */
const exits = () =>
  HOST.flatMap(filesBelow).flatMap((path) => {
    const file = parse(path)
    const isWayOut = (/** @type {ts.Statement} */ statement) =>
      ts.isReturnStatement(statement) || ts.isThrowStatement(statement) || ts.isContinueStatement(statement)
    return [...nodesOf(file)].flatMap((node) => {
      if (!ts.isIfStatement(node) || node.elseStatement !== undefined) return []
      const body = node.thenStatement
      const last = ts.isBlock(body) ? body.statements.at(-1) : body
      return last !== undefined && isWayOut(last) ? [mutantOf(file, node, ';')] : []
    })
  })

/** Guards are given to `setup` by name. @returns {Mutant[]} */
const guards = () =>
  filesBelow('src/machines').flatMap((path) => {
    const file = parse(path)
    return [...nodesOf(file)].flatMap((node) => {
      if (!ts.isPropertyAssignment(node) || node.name.getText(file) !== 'guards') return []
      if (!ts.isObjectLiteralExpression(node.initializer)) return []
      return node.initializer.properties.flatMap((guard) =>
        ts.isPropertyAssignment(guard) ? [mutantOf(file, guard.initializer, '() => true')] : [],
      )
    })
  })

const KINDS = { awaits, exits, guards }
const kind = KINDS[/** @type {keyof typeof KINDS} */ (values.kind)]
if (kind === undefined) {
  console.error(`mutate: option --kind "${values.kind}" must be one of ${Object.keys(KINDS).join(', ')}`)
  process.exit(64)
}

// ── the copy ────────────────────────────────────────────────────────────────────────────────────

const copy = join(tmpdir(), `runwarden-mutants-${String(process.pid)}`)
for (const path of git('ls-files').split('\n').filter(Boolean)) {
  if (!existsSync(join(root, path))) continue
  mkdirSync(dirname(join(copy, path)), { recursive: true })
  cpSync(join(root, path), join(copy, path))
}
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))

/** @param {string} command @param {string[]} args @param {number} timeoutMs */
const passes = (command, args, timeoutMs) =>
  spawnSync(command, args, { cwd: copy, timeout: timeoutMs, stdio: 'ignore' }).status === 0

const vitest = (/** @type {string[]} */ ...paths) =>
  passes('npx', ['vitest', 'run', '--bail', '1', '--reporter', 'dot', ...paths], 400_000)

/** Those next to what was changed; the rest of the suite needs a real machine, and minutes. */
const SUITES = {
  charts: ['test/machines'],
  host: [
    'test/actors',
    'test/jobs/simulated.test.ts',
    'test/testing',
    ...['race-table', 'turns', 'pause', 'delivery'].map((name) => `test/engine/${name}-simulated.test.ts`),
  ],
  real: [
    'test/engine/stop.test.ts',
    'test/engine/close.test.ts',
    'test/engine/recovery.test.ts',
    'test/engine/parts.test.ts',
    'test/engine/presence.test.ts',
    'test/engine/pause.test.ts',
    'test/jobs/queue.test.ts',
  ],
}

/** One file, without its types: the compiler's own checks are not what is asked. @param {string} path @param {string} text */
const compile = (path, text) => {
  const { outputText } = ts.transpileModule(text, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  })
  writeFileSync(join(copy, '.sim', path.replace(/\.ts$/, '.js')), outputText)
}

/** @param {Mutant} mutant @returns {string} What noticed, or `survived`. */
const judge = (mutant) => {
  const sim = ['.sim/test/sim/main.js', '--seed', '1', '--runs', values.runs, '--plain']
  if (!passes('node', sim, 300_000)) return 'simulator'
  if (values.suites === 'none') return 'survived'
  if (mutant.path.startsWith('src/machines')) return vitest(...SUITES.charts) ? 'survived' : 'exploration'
  if (!vitest(...SUITES.host)) return 'simulated suites'
  if (values.suites === 'simulated') return 'survived'
  return vitest(...SUITES.real) ? 'survived' : 'real suites'
}

if (!passes('npx', ['tsc', '-p', 'test/sim/tsconfig.json'], 300_000)) {
  console.error('mutate: the copy does not compile')
  process.exit(1)
}
const mutants = kind()
  .filter(({ name }) => name.includes(values.only))
  .filter(
    (_, index) => index >= Number(values.from) && (index - Number(values.from)) % Number(values.every) === 0,
  )
console.log(`${String(mutants.length)} mutants of kind ${values.kind}, in ${copy}`)
/** @type {Record<string, number>} */
const counts = {}
for (const mutant of mutants) {
  const { path, from, to, text, name } = mutant
  const sound = readFileSync(join(root, path), 'utf8')
  const changed = sound.slice(0, from) + text + sound.slice(to)
  writeFileSync(join(copy, path), changed)
  compile(path, changed)
  const verdict = judge(mutant)
  writeFileSync(join(copy, path), sound)
  compile(path, sound)
  counts[verdict] = (counts[verdict] ?? 0) + 1
  appendFileSync(values.out, `${JSON.stringify({ kind: values.kind, name, verdict })}\n`)
  console.log(`${verdict.padEnd(17)} ${name}`)
}
console.log(
  Object.entries(counts)
    .map(([verdict, count]) => `${String(count)} ${verdict}`)
    .join(', '),
)
