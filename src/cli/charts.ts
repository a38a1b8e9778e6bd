/** `runwarden charts`: the statecharts that the library runs, as they were generated with it. */
import { readFileSync, readdirSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Option } from 'commander'
import type { Command } from 'commander'
import { CliError } from './errors.js'
import { clean, printJson, printLine, printLines } from './output.js'
import { stdout } from './streams.js'
import { examples, verb } from './verb.js'
import type { SharedOptions } from './verb.js'

/** Beside `dist` in the package. */
const FOLDER = fileURLToPath(new URL('../../statecharts/', import.meta.url))

const EXTENSION = { json: '.json', mermaid: '.mmd', svg: '.svg' } as const
type Format = keyof typeof EXTENSION

interface ChartsOptions extends SharedOptions {
  readonly format?: Format
}

const chartNames = (): readonly string[] => {
  try {
    return readdirSync(FOLDER)
      .filter((file) => extname(file) === EXTENSION.json)
      .map((file) => basename(file, EXTENSION.json))
      .sort()
  } catch {
    // A package without its charts still runs; what is missing is said below.
    return []
  }
}

const chosen = (name: string | undefined): readonly string[] => {
  const names = chartNames()
  if (names.length === 0)
    throw new CliError('refused', `the charts are missing from this installation (${FOLDER})`)
  if (name === undefined) return names
  if (names.includes(name)) return [name]
  throw new CliError(
    'invalid-option',
    `charts: there is no chart ${JSON.stringify(name)}; there are ${names.join(', ')}`,
  )
}

const read = (name: string, format: Format): string =>
  readFileSync(`${FOLDER}${name}${EXTENSION[format]}`, 'utf8')

const readDefinition = (name: string): unknown => JSON.parse(read(name, 'json'))

const describe = (name: string): string => {
  const definition = readDefinition(name) as { readonly description?: unknown }
  return typeof definition.description === 'string' ? clean(definition.description) : ''
}

const list = async (names: readonly string[]): Promise<void> => {
  const width = Math.max(...names.map(({ length }) => length))
  await printLines(names.map((name) => `${name.padEnd(width)}  ${describe(name)}`.trimEnd()))
  await printLine(`\nThe files are in ${FOLDER}`)
}

/** One chart as its file is; several as one object by name. */
const printDefinitions = (names: readonly string[], isOne: boolean): Promise<void> => {
  const [only] = names
  if (isOne && only !== undefined) return stdout.write(read(only, 'json'))
  return printJson(Object.fromEntries(names.map((name) => [name, readDefinition(name)])))
}

const print = async (name: string | undefined, { format, json: isJson }: ChartsOptions): Promise<void> => {
  const names = chosen(name)
  const wanted = format ?? (isJson === true ? 'json' : name === undefined ? undefined : 'mermaid')
  if (wanted === undefined) await list(names)
  else if (wanted === 'json') await printDefinitions(names, name !== undefined)
  else for (const each of names) await stdout.write(read(each, wanted))
}

export const addCharts = (program: Command): void => {
  verb(program, 'charts', 'print the statecharts that this version runs')
    .argument('[name]', 'one of them (default: all)')
    .addOption(new Option('--format <format>', 'how').choices(Object.keys(EXTENSION)))
    .addHelpText(
      'after',
      `${examples(
        'runwarden charts',
        'runwarden charts run',
        'runwarden charts --format svg run > run.svg',
        'runwarden charts --format json | jq .run.states',
      )}

Without a format and a name they are listed; one of them comes as Mermaid.`,
    )
    .action(async (name: string | undefined, _options: unknown, self: Command) => {
      await print(name, self.optsWithGlobals<ChartsOptions>())
    })
}
