/**
 * Finds values in the bytes of one JSON text without parsing it.
 *
 * Positions in, positions out: nothing is decoded and nothing is allocated, so that a frame costs what its head costs (the values
 * wanted stand near the front). The text is not validated: of a text that is no JSON, or was cut, nothing is found past the fault.
 */
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const SPACE = 0x20

/** A string longer than this is crossed with a native search; a shorter one is cheaper to walk. */
const WALK_BYTES = 64

/** Control characters count as space: some programs leave a NUL between their lines. */
export const skipSpace = (bytes: Buffer, at: number, end: number): number => {
  while (at < end && (bytes[at] as number) <= SPACE) at += 1
  return at
}

const isEscaped = (bytes: Buffer, quoteAt: number): boolean => {
  let at = quoteAt - 1
  while (bytes[at] === BACKSLASH) at -= 1
  return (quoteAt - at) % 2 === 0
}

/** The position of the quote that closes the string whose content begins at `at`; `end` when there is none. */
export const endOfString = (bytes: Buffer, at: number, end: number): number => {
  const walkEnd = Math.min(end, at + WALK_BYTES)
  while (at < walkEnd) {
    const byte = bytes[at]
    if (byte === QUOTE) return at
    at += byte === BACKSLASH ? 2 : 1
  }
  if (at >= end) return end
  let quoteAt = bytes.indexOf(QUOTE, at)
  while (quoteAt >= 0 && quoteAt < end && isEscaped(bytes, quoteAt))
    quoteAt = bytes.indexOf(QUOTE, quoteAt + 1)
  return quoteAt < 0 || quoteAt > end ? end : quoteAt
}

/** The position behind the container that is open at `at`. */
export const endOfContainer = (bytes: Buffer, at: number, end: number): number => {
  let depth = 1
  while (at < end) {
    const byte = bytes[at] as number
    at += 1
    if (byte === QUOTE) at = endOfString(bytes, at, end) + 1
    // Of braces and brackets bit 5 is set or not; opening ones are 0x5b and 0x7b, closing ones 0x5d and 0x7d.
    else if ((byte | 0x20) === OPEN_BRACE) depth += 1
    else if ((byte | 0x20) === CLOSE_BRACE) {
      depth -= 1
      if (depth === 0) return at
    }
  }
  return end
}

/** The position behind a number, `true`, `false` or `null` that begins at `at`; `at` itself where something else begins. */
export const endOfScalar = (bytes: Buffer, at: number, end: number): number => {
  while (at < end) {
    const byte = bytes[at] as number
    if (byte <= SPACE || byte === COMMA || byte === OPEN_BRACE || byte === OPEN_BRACKET) return at
    if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) return at
    at += 1
  }
  return end
}

/** The position behind the value that begins at `at`. */
export const endOfValue = (bytes: Buffer, at: number, end: number): number => {
  const byte = bytes[at]
  if (byte === QUOTE) return Math.min(endOfString(bytes, at + 1, end) + 1, end)
  if (byte === OPEN_BRACE || byte === OPEN_BRACKET) return endOfContainer(bytes, at + 1, end)
  return endOfScalar(bytes, at, end)
}

export const isAt = (bytes: Buffer, at: number, word: Uint8Array): boolean => {
  for (let index = 0; index < word.length; index += 1) {
    if (bytes[at + index] !== word[index]) return false
  }
  return true
}

/** Whether the string whose content begins at `at` says exactly `word`. */
const isWord = (bytes: Buffer, at: number, end: number, word: Uint8Array): boolean =>
  at + word.length < end && bytes[at + word.length] === QUOTE && isAt(bytes, at, word)

/** The position of the value of `key` among the members that begin at `at`, behind a brace or a comma; -1 when it is not there. */
const findMember = (bytes: Buffer, at: number, end: number, key: Uint8Array): number => {
  at = skipSpace(bytes, at, end)
  while (at < end && bytes[at] === QUOTE) {
    const isFound = isWord(bytes, at + 1, end, key)
    at = isFound ? at + key.length + 2 : endOfString(bytes, at + 1, end) + 1
    at = skipSpace(bytes, at, end)
    if (at >= end || bytes[at] !== COLON) return -1
    at = skipSpace(bytes, at + 1, end)
    if (at >= end) return -1
    if (isFound) return at
    at = skipSpace(bytes, endOfValue(bytes, at, end), end)
    if (at >= end || bytes[at] !== COMMA) return -1
    at = skipSpace(bytes, at + 1, end)
  }
  return -1
}

/** The position of the value of `key` in the object that begins at `at`; -1 when there is no such object or key. */
export const findKey = (bytes: Buffer, at: number, end: number, key: Uint8Array): number =>
  bytes[at] === OPEN_BRACE ? findMember(bytes, at + 1, end, key) : -1

/** The position of the first element of the array that begins at `at`; -1 when it has none. */
export const firstElement = (bytes: Buffer, at: number, end: number): number => {
  at = skipSpace(bytes, at + 1, end)
  return at < end && bytes[at] !== CLOSE_BRACKET ? at : -1
}

/** The position of the element or member behind the value that ends at `at`; -1 when it was the last. */
export const nextElement = (bytes: Buffer, at: number, end: number): number => {
  at = skipSpace(bytes, at, end)
  if (at >= end || bytes[at] !== COMMA) return -1
  at = skipSpace(bytes, at + 1, end)
  return at < end ? at : -1
}

export const isString = (bytes: Buffer, at: number): boolean => bytes[at] === QUOTE
export const isObject = (bytes: Buffer, at: number): boolean => bytes[at] === OPEN_BRACE
export const isArray = (bytes: Buffer, at: number): boolean => bytes[at] === OPEN_BRACKET
