/** What happened in one world, as a hash: two courses that differ in anything that was written down differ in it. */
export class Trace {
  /** Kept only where someone will read them. */
  readonly lines: string[] | null
  #high = 0x811c9dc5
  #low = 0x1000193

  constructor({ isKept }: { readonly isKept: boolean }) {
    this.lines = isKept ? [] : null
  }

  note(atMs: number, text: string): void {
    const line = `${String(atMs)} ${text}`
    this.lines?.push(line)
    for (let index = 0; index < line.length; index += 1) {
      const code = line.charCodeAt(index)
      this.#high = Math.imul(this.#high ^ code, 0x01000193)
      this.#low = Math.imul(this.#low ^ (code + index), 0x85ebca6b)
    }
  }

  get hash(): string {
    return [this.#high, this.#low].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('')
  }
}
