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

/** Called with slots for values: it may place them, and not look at them. One of these is known by its identity: define it once. */
export type Build<R extends object> = (tx: Tx, row: R) => Compilable
/** The same for as many rows as it is given. */
export type BuildRows<R extends object> = (tx: Tx, rows: readonly R[]) => Compilable

/** A batch is cut into these, so that few texts serve every length; far below every dialect's maximum of bound values. */
const SIZES = [64, 8, 1]

interface Row {
  readonly [column: string]: unknown
}

/** Slots in the shape of a row. */
const slotsLike = <R extends object>(row: R, index: number): R =>
  Object.fromEntries(Object.keys(row).map((column) => [column, new Slot(index, column)])) as R

export class Statements {
  /** By what builds them, and the number of their rows. */
  readonly #texts = new Map<unknown, Map<number, CompiledQuery>>()

  /** @returns how many rows of the table it changed. The row has a value, or null, for each column. */
  run<R extends object>(tx: Tx, build: Build<R>, row: R): Promise<number> {
    return this.#execute(tx, build, [row], () => build(tx, slotsLike(row, 0)))
  }

  /** All rows have the same columns. None is nothing to do. */
  async runAll<R extends object>(tx: Tx, build: BuildRows<R>, rows: readonly R[]): Promise<void> {
    for (let from = 0; from < rows.length;) {
      const size = SIZES.find((candidate) => candidate <= rows.length - from) ?? 1
      const piece = rows.slice(from, from + size)
      await this.#execute(tx, build, piece, () => build(tx, piece.map(slotsLike)))
      from += size
    }
  }

  async #execute(tx: Tx, key: unknown, rows: readonly object[], build: () => Compilable): Promise<number> {
    const sizes = this.#texts.get(key) ?? new Map<number, CompiledQuery>()
    this.#texts.set(key, sizes)
    const text = sizes.get(rows.length) ?? build().compile()
    sizes.set(rows.length, text)
    const parameters = text.parameters.map((value) =>
      value instanceof Slot ? (rows[value.row] as Row | undefined)?.[value.column] : value,
    )
    const { numAffectedRows = 0n } = await tx.executeQuery({ ...text, parameters })
    return Number(numAffectedRows)
  }
}
