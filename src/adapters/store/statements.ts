/**
 * Statements of the write path: Kysely makes the text of each once, and later only their values change.
 *
 * Owns: the texts of one store, and how many rows go into one. To make a text costs several times what SQLite needs to run it (B5).
 * Does not own: what a statement says. It is built with Kysely, so the host's schema and plugins hold for it as for every other.
 */
import type { Compilable, CompiledQuery } from 'kysely'
import type { Tx } from './schema.js'

/** Stands for a value while the text is made. */
class Slot {
  constructor(
    readonly row: number,
    readonly column: string,
  ) {}
}

type Rows<R> = readonly [R, ...R[]]

/** Called with slots for values: it may place them, and not look at them. One of these is known by its identity: define it once. */
export type Build<R extends object> = (tx: Tx, rows: Rows<R>) => Compilable

/** A batch is cut into these, so that few texts serve every length; far below every dialect's maximum of bound values. */
const SIZES = [64, 8, 1]

interface Row {
  readonly [column: string]: unknown
}

const isSome = <R>(rows: readonly R[]): rows is Rows<R> => rows.length > 0

/** Slots in the shape of the rows. */
const slotsLike = <R extends object>(rows: Rows<R>): Rows<R> =>
  rows.map((row, index) =>
    Object.fromEntries(Object.keys(row).map((column) => [column, new Slot(index, column)])),
  ) as unknown as Rows<R>

export class Statements {
  readonly #texts = new Map<unknown, Map<number, CompiledQuery>>()

  /** @returns how many rows it changed. All rows have the same columns, and a value, or null, for each. */
  async run<R extends object>(tx: Tx, build: Build<R>, rows: readonly R[]): Promise<number> {
    let changed = 0
    for (let from = 0; from < rows.length;) {
      const size = SIZES.find((candidate) => candidate <= rows.length - from) ?? 1
      changed += await this.#runOne(tx, build, rows.slice(from, from + size))
      from += size
    }
    return changed
  }

  async #runOne<R extends object>(tx: Tx, build: Build<R>, rows: readonly R[]): Promise<number> {
    if (!isSome(rows)) return 0
    const text = this.#textOf(tx, build, rows)
    const parameters = text.parameters.map((value) =>
      value instanceof Slot ? (rows[value.row] as Row | undefined)?.[value.column] : value,
    )
    const { numAffectedRows = 0n } = await tx.executeQuery({ ...text, parameters })
    return Number(numAffectedRows)
  }

  #textOf<R extends object>(tx: Tx, build: Build<R>, rows: Rows<R>): CompiledQuery {
    const sizes = this.#texts.get(build) ?? new Map<number, CompiledQuery>()
    this.#texts.set(build, sizes)
    const text = sizes.get(rows.length) ?? build(tx, slotsLike(rows)).compile()
    sizes.set(rows.length, text)
    return text
  }
}
