/**
 * The house rules that no linter knows. Each claim reads the sources itself, apart from the lint config, so that
 * a hole in a lint rule does not open a door.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { impureInMachines, layers, publicEntries, signalDoors, testingRoom } from '../scripts/layers.js'
import type { Layer } from '../scripts/layers.js'
import { exemptions, fileLinesMax, functionLinesMax } from './tidy/exemptions.js'
import {
  commentsOf,
  functionsOf,
  importsOf,
  lineOf,
  nodesOf,
  readSources,
  root,
  testNamesOf,
} from './tidy/source-tree.js'
import type { Import, SourceText } from './tidy/source-tree.js'

const sources = readSources('src')
const tests = readSources('test')

const isWithin = (path: string, folderOrFile: string) =>
  path === folderOrFile || path.startsWith(`${folderOrFile}/`)
const isWithinAny = (path: string, list: readonly string[]) => list.some((entry) => isWithin(path, entry))

/** A claim about every source: `judge` names what is wrong with one, and where. */
function faultsIn(files: readonly SourceText[], judge: (source: SourceText) => Iterable<string>): string[] {
  return files.flatMap((source) => [...judge(source)].map((fault) => `${source.path}:${fault}`))
}

/** A claim about every node of every source. */
function faultyNodes(files: readonly SourceText[], isFault: (node: ts.Node) => boolean): string[] {
  return faultsIn(files, (source) =>
    [...nodesOf(source.ast)]
      .filter(isFault)
      .map((node) => `${lineOf(source, node)} ${node.getText(source.ast).slice(0, 60)}`),
  )
}

const isMember = (node: ts.Node, object: string, property: string) =>
  ts.isPropertyAccessExpression(node) &&
  node.name.text === property &&
  ts.isIdentifier(node.expression) &&
  node.expression.text === object

// ── layers ──────────────────────────────────────────────────────────────────────────────────────

const isModule = (specifier: string, name: string) => {
  const bare = (text: string) => text.replace(/^node:/, '')
  return isWithin(bare(specifier), bare(name))
}

/** The folder whose files see each other: the layer's, or its subfolder; a file beside the subfolders is alone. */
function roomOf(layer: Layer, path: string): string {
  if (!layer.roomPerSubfolder) return layer.folder
  const below = path.slice(layer.folder.length + 1)
  return below.includes('/') ? `${layer.folder}/${below.split('/', 1).join('')}` : path
}

function breaksLayer(layer: Layer, from: string, { specifier, target, isTypeOnly }: Import): boolean {
  if (target === undefined) {
    if (layer.forbidden.some((name) => isModule(specifier, name))) return true
    return layer.packages !== 'any' && !layer.packages.some((name) => isModule(specifier, name))
  }
  if (isWithinAny(target, [roomOf(layer, from), ...layer.values])) return false
  return !(isTypeOnly && isWithinAny(target, layer.types))
}

test('TIDY: every import obeys the layer table', () => {
  const faults = faultsIn(sources, (source) => {
    const layer = layers.find(({ folder }) => isWithin(source.path, folder))
    if (!layer) return []
    const broken = importsOf(source).filter((found) => breaksLayer(layer, source.path, found))
    return broken.map(({ line, specifier }) => `${line} imports ${specifier}. ${layer.because}`)
  })
  expect(faults).toEqual([])
})

test('TIDY: nothing in src/ depends on simulations but their own entry', () => {
  const { folder, entry, because } = testingRoom
  const outside = sources.filter(({ path }) => !isWithin(path, folder))
  const faults = faultsIn(outside, (source) =>
    importsOf(source)
      .filter(({ target = '' }) => target === entry || (isWithin(target, folder) && source.path !== entry))
      .map(({ line, specifier }) => `${line} imports ${specifier}. ${because}`),
  )
  expect(faults).toEqual([])
})

test('TIDY: every folder of src/ is in the layer table', () => {
  const entries = existsSync(join(root, 'src')) ? readdirSync(join(root, 'src'), { withFileTypes: true }) : []
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => `src/${entry.name}`)
  expect(folders.filter((folder) => !layers.some((layer) => layer.folder === folder))).toEqual([])
})

test('TIDY: only the doors of INV-2 reach a spawn or a signal', () => {
  const outside = sources.filter(({ path }) => !isWithinAny(path, signalDoors.rooms))
  const imports = faultsIn(outside, (source) =>
    importsOf(source)
      .filter(({ specifier }) => {
        const isExeca = isModule(specifier, 'execa') && !isWithinAny(source.path, signalDoors.execaRooms)
        return isExeca || signalDoors.modules.some((name) => isModule(specifier, name))
      })
      .map(({ line, specifier }) => `${line} imports ${specifier}. ${signalDoors.because}`),
  )
  const kills = faultyNodes(outside, (node) => isMember(node, 'process', 'kill'))
  expect([...imports, ...kills]).toEqual([])
})

test('TIDY: no import cycles', () => {
  const graph = new Map(
    sources.map((source) => [
      source.path,
      importsOf(source).flatMap(({ target, isTypeOnly }) => (target && !isTypeOnly ? [target] : [])),
    ]),
  )
  const done = new Set<string>()
  const cycles: string[] = []
  const walk = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) cycles.push([...trail.slice(trail.indexOf(path)), path].join(' → '))
    if (trail.includes(path) || done.has(path)) return
    for (const next of graph.get(path) ?? []) walk(next, [...trail, path])
    done.add(path)
  }
  for (const path of graph.keys()) walk(path, [])
  expect(cycles).toEqual([])
})

test('TIDY: every published entry is a known public file with a source', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { default: string }>
  }
  const entries = Object.values(manifest.exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [entry.default.replace('./dist/', 'src/').replace(/\.js$/, '.ts')],
  )
  expect(entries.filter((path) => !publicEntries.includes(path) || !existsSync(join(root, path)))).toEqual([])
})

// ── rules and their tests ───────────────────────────────────────────────────────────────────────

const idPattern = /\b(?:INV-\d+|[KOPRCLSFV]\d{1,2})\b/g

/** Ids that a test's name starts with: `P7: …`, or several, `INV-1, P7: …`. */
const testedIds = new Set(
  tests.flatMap(testNamesOf).flatMap((name) => {
    const [heading = ''] = /^[A-Z]+-?\d+(?:, [A-Z]+-?\d+)*(?=: )/.exec(name) ?? []
    return heading.split(', ')
  }),
)

test('TIDY: every invariant and rule cited in a comment of src/ has a test named after it', () => {
  const citedIn = new Map<string, string[]>()
  for (const source of sources) {
    for (const id of new Set(commentsOf(source).match(idPattern) ?? [])) {
      citedIn.set(id, [...(citedIn.get(id) ?? []), source.path])
    }
  }
  const untested = [...citedIn]
    .filter(([id]) => !testedIds.has(id))
    .map(([id, paths]) => `${id}, cited in ${paths.join(', ')}`)
  expect(untested).toEqual([])
})

test('TIDY: every rule that docs/rules.md calls held has a test named after it', ({ skip }) => {
  const page = join(root, 'docs/rules.md')
  if (!existsSync(page)) skip('docs/rules.md is not written yet: there is no list of held rules to check')
  const rows = readFileSync(page, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.split('|').map((cell) => cell.replaceAll(/[*`]/g, '').trim()))
  const held = rows
    .filter((cells) => cells.some((cell) => cell.toLowerCase() === 'held'))
    .map((cells) => cells[1] ?? '')
  expect(held.filter((id) => !testedIds.has(id))).toEqual([])
})

// ── sizes ───────────────────────────────────────────────────────────────────────────────────────

test('TIDY: files and functions of src/ fit, except those exempted with a reason that still holds', () => {
  const long = new Map<string, string>()
  for (const source of sources) {
    const fileLines = source.text.trimEnd().split('\n').length
    if (fileLines > fileLinesMax) long.set(source.path, `${fileLines} lines, at most ${fileLinesMax}`)
    for (const { name, lines } of functionsOf(source)) {
      const size = `${lines} lines, at most ${functionLinesMax}`
      if (lines > functionLinesMax) long.set(`${source.path}#${name}`, size)
    }
  }
  const list = exemptions.map(({ what, reason }) => `  ${what}: ${reason}`).join('\n')
  console.log(exemptions.length > 0 ? `Exempted from the size limits:\n${list}` : 'No size is exempted.')

  const exempted = new Set(exemptions.map(({ what }) => what))
  expect([...long].filter(([what]) => !exempted.has(what)).map((entry) => entry.join(': '))).toEqual([])
  expect([...exempted].filter((what) => !long.has(what)).map((what) => `${what} fits again`)).toEqual([])
})

// ── how a file is written ───────────────────────────────────────────────────────────────────────

test('TIDY: machines read no clock, no randomness and set no timer', () => {
  const machines = sources.filter(({ path }) => isWithin(path, 'src/machines'))
  const isName = (node: ts.Node) =>
    ts.isIdentifier(node) &&
    impureInMachines.globals.includes(node.text) &&
    // A region may be called `process`: only the global by that name is meant, not a property key.
    !(ts.isPropertyAccessExpression(node.parent) && node.parent.name === node) &&
    (ts.isPropertyAccessExpression(node.parent) ||
      ts.isCallExpression(node.parent) ||
      ts.isNewExpression(node.parent))
  const isImpure = (node: ts.Node) =>
    isName(node) ||
    impureInMachines.properties.some(({ object, property }) => isMember(node, object, property))
  expect(faultyNodes(machines, isImpure)).toEqual([])
})

test('TIDY: src/ has no default export and no bare Error', () => {
  const bareErrors = [
    'Error',
    'TypeError',
    'RangeError',
    'SyntaxError',
    'ReferenceError',
    'EvalError',
    'URIError',
  ]
  const isBareError = (node: ts.Node) =>
    (ts.isNewExpression(node) || ts.isCallExpression(node)) &&
    ts.isIdentifier(node.expression) &&
    bareErrors.includes(node.expression.text)
  const isDefaultExport = (node: ts.Node) =>
    ts.isExportAssignment(node) || node.kind === ts.SyntaxKind.DefaultKeyword
  expect(faultyNodes(sources, (node) => isDefaultExport(node) || isBareError(node))).toEqual([])
})

test('TIDY: no file of the project names a path of the machine it was written on', () => {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  const files = listed.split('\0').filter((path) => path !== '' && !isWithin(path, 'test'))
  const machineFolders = ['work', 'farm'].join('|')
  const besideTheRepository = ['\\.\\.', 'shared'].join('/')
  const foreign = new RegExp(`(?<![\\w.-])/(?:${machineFolders})/|${besideTheRepository}(?![\\w.-])`)
  const faults = files.flatMap((path) => {
    // A listed file may be gone from the work tree: a deletion not yet committed.
    if (!existsSync(join(root, path))) return []
    const lines = readFileSync(join(root, path), 'latin1').split('\n')
    return lines.flatMap((line, index) => (foreign.test(line) ? [`${path}:${index + 1}`] : []))
  })
  expect(faults).toEqual([])
})
