/** Sizes on the command line: `4096`, `64k`, `10M`, `1G`; powers of 1024, as for head(1) and dd(1). A plain number is bytes. */
import { InvalidArgumentError } from 'commander'

const UNIT_BYTES = { b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 } as const
type Unit = keyof typeof UNIT_BYTES

const SIZE = /^(\d+(?:\.\d+)?)([bkmgt])?(?:i?b)?$/i

/** An option's argument in bytes; commander names the option and the value when it cannot be used. */
export const parseSize = (text: string): number => {
  const [, number, unit = 'b'] = SIZE.exec(text.trim()) ?? []
  const bytes =
    number === undefined ? NaN : Math.round(Number(number) * UNIT_BYTES[unit.toLowerCase() as Unit])
  if (!Number.isSafeInteger(bytes) || bytes < 1) {
    throw new InvalidArgumentError('Give a size of at least one byte, such as 4096, 64k, 10M or 1G.')
  }
  return bytes
}
