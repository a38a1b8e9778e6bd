/** How things look: JSON for programs, tables for people. */
import pc from 'picocolors'
import { stdout } from './streams.js'
import type { Sink } from './streams.js'

/** NO_COLOR and FORCE_COLOR as they are commonly meant; a pipe gets no colours, also not in CI. */
const hasColours = (sink: Sink): boolean => {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env
  if (NO_COLOR !== undefined && NO_COLOR !== '') return false
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '') return FORCE_COLOR !== '0'
  return sink.isTerminal && TERM !== 'dumb'
}

export type Colours = ReturnType<typeof pc.createColors>
export const coloursFor = (sink: Sink): Colours => pc.createColors(hasColours(sink))

/** Names and reasons come from agents and strangers: nothing of them may steer the terminal. */
export const clean = (text: string): string =>
  // eslint-disable-next-line no-control-regex -- the control characters are what this looks for
  text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  })

export const printJson = (value: unknown): Promise<void> => stdout.write(`${JSON.stringify(value)}\n`)

export const printLine = (text = ''): Promise<void> => stdout.write(`${text}\n`)

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => string
  /** Applied after the cell was padded. */
  readonly paint?: (text: string, row: Row) => string
}

/** Lines of a table whose last column is as wide as it likes. */
export const table = <Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  colours: Colours,
): string[] => {
  const cells = rows.map((row) => columns.map(({ of }) => clean(of(row))))
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...cells.map((line) => line[index]?.length ?? 0)),
  )
  const isLast = (index: number): boolean => index === columns.length - 1
  const pad = (text: string, index: number): string =>
    isLast(index) ? text : text.padEnd(widths[index] ?? 0)
  const head = columns.map(({ title }, index) => colours.dim(pad(title, index))).join('  ')
  const body = rows.map((row, line) =>
    columns
      .map(({ paint }, index) => {
        const text = pad(cells[line]?.[index] ?? '', index)
        return paint === undefined ? text : paint(text, row)
      })
      .join('  ')
      .trimEnd(),
  )
  return [head.trimEnd(), ...body]
}

/** What a headline or a receipt's status says at a glance. */
export const paintStatus = (colours: Colours, status: string): ((text: string) => string) => {
  if (status.includes('unconfirmed') || status.startsWith('failed') || status === 'lost') return colours.red
  if (status.startsWith('completed') || status === 'confirmed') return colours.green
  if (/^(cancelled|interrupted|already-terminal|nothing-to-stop)/.test(status)) return colours.dim
  return colours.yellow
}

export const printLines = async (lines: readonly string[]): Promise<void> => {
  for (const line of lines) await printLine(line)
}
