/**
 * Owns: reading the project's TypeScript files and what they say: imports, comments, functions, test names.
 * Does not own: any judgement. `test/tidy.test.ts` makes the claims.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import ts from 'typescript'

export const root = resolve(import.meta.dirname, '../..')

export interface Import {
  readonly specifier: string
  /** The repository path a relative import names; undefined for a package. */
  readonly target: string | undefined
  /** Erased by the compiler: `import type`, `export type`, `import('x').T`. An inline `{ type X }` is not. */
  readonly isTypeOnly: boolean
  readonly line: number
}

export interface SourceText {
  /** From the repository's root, with forward slashes. */
  readonly path: string
  readonly text: string
  readonly ast: ts.SourceFile
}

export interface Measured {
  readonly name: string
  readonly lines: number
}

/** Every .ts file below a folder of the repository; none when the folder does not exist. */
export function readSources(folder: string): readonly SourceText[] {
  return listFiles(folder).map((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    return { path, text, ast: ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true) }
  })
}

function listFiles(folder: string): readonly string[] {
  const entries = readdirSync(root, { withFileTypes: true }).some((entry) => entry.name === folder)
    ? readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    : []
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .map((path) => path.replaceAll('\\', '/'))
    .sort()
}

export function lineOf(source: SourceText, node: ts.Node): number {
  return source.ast.getLineAndCharacterOfPosition(node.getStart(source.ast)).line + 1
}

/** All nodes of a file, parents first. */
export function* nodesOf(node: ts.Node): Generator<ts.Node> {
  yield node
  const children: ts.Node[] = []
  ts.forEachChild(node, (child) => {
    children.push(child)
  })
  for (const child of children) yield* nodesOf(child)
}

export function importsOf(source: SourceText): readonly Import[] {
  const found: Import[] = []
  for (const node of nodesOf(source.ast)) {
    const named = importedBy(node)
    if (!named || !ts.isStringLiteralLike(named.specifier)) continue
    const specifier = named.specifier.text
    const target = specifier.startsWith('.')
      ? join(dirname(source.path), specifier).replaceAll('\\', '/').replace(/\.js$/, '.ts')
      : undefined
    found.push({ specifier, target, isTypeOnly: named.isTypeOnly, line: lineOf(source, node) })
  }
  return found
}

function importedBy(node: ts.Node): { specifier: ts.Node; isTypeOnly: boolean } | undefined {
  if (ts.isImportDeclaration(node)) {
    const isTypeOnly = node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
    return { specifier: node.moduleSpecifier, isTypeOnly }
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier) {
    return { specifier: node.moduleSpecifier, isTypeOnly: node.isTypeOnly }
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return { specifier: node.argument.literal, isTypeOnly: true }
  }
  const isDynamicImport = ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
  const [argument] = isDynamicImport ? node.arguments : []
  return argument && { specifier: argument, isTypeOnly: false }
}

/** The comments of a file, as one text. Strings and templates that look like comments are not among them. */
export function commentsOf(source: SourceText): string {
  const ranges = new Map<number, number>()
  const visit = (node: ts.Node): void => {
    const before = ts.getLeadingCommentRanges(source.text, node.getFullStart()) ?? []
    const after = ts.getTrailingCommentRanges(source.text, node.getEnd()) ?? []
    const isLiteralText = ts.isTemplateHead(node) || ts.isTemplateMiddle(node)
    for (const range of isLiteralText ? before : [...before, ...after]) ranges.set(range.pos, range.end)
    node.getChildren(source.ast).forEach(visit)
  }
  visit(source.ast)
  return [...ranges].map(([from, to]) => source.text.slice(from, to)).join('\n')
}

/** Every function with a body: its name, or the name it is stored under, and its length in lines. */
export function functionsOf(source: SourceText): readonly Measured[] {
  const found: Measured[] = []
  for (const node of nodesOf(source.ast)) {
    if (!ts.isFunctionLike(node) || !('body' in node) || !node.body) continue
    const last = source.ast.getLineAndCharacterOfPosition(node.getEnd()).line + 1
    found.push({ name: nameOf(node), lines: last - lineOf(source, node) + 1 })
  }
  return found
}

function nameOf(node: ts.SignatureDeclaration): string {
  if (node.name) return node.name.getText()
  if (ts.isConstructorDeclaration(node)) return `${node.parent.name?.text ?? 'class'}.constructor`
  const { parent } = node
  const isStored = ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)
  return isStored ? parent.name.getText() : 'anonymous'
}

/** Names of the tests and groups in a file that can run: skipped and to-do ones prove nothing. */
export function testNamesOf(source: SourceText): readonly string[] {
  const found: string[] = []
  for (const node of nodesOf(source.ast)) {
    if (!ts.isCallExpression(node)) continue
    const [first] = node.arguments
    const chain = calleeChain(node.expression)
    if (!['test', 'it', 'describe'].includes(chain[0] ?? '')) continue
    if (chain.includes('skip') || chain.includes('todo')) continue
    if (first && ts.isStringLiteralLike(first)) found.push(first.text)
    if (first && ts.isTemplateExpression(first)) found.push(first.head.text)
  }
  return found
}

/** `test.skipIf(x).each(y)` as ['test', 'skipIf', 'each']. */
function calleeChain(node: ts.Expression): readonly string[] {
  if (ts.isIdentifier(node)) return [node.text]
  if (ts.isPropertyAccessExpression(node)) return [...calleeChain(node.expression), node.name.text]
  if (ts.isCallExpression(node)) return calleeChain(node.expression)
  return []
}
