/** Texts that options are made of. */
import * as v from 'valibot'

export const noNul = v.check((text: string) => !text.includes('\0'), 'must not hold a NUL byte')
export const name = v.pipe(
  v.string(),
  v.nonEmpty('must not be empty'),
  v.maxLength(256, 'must be at most 256 characters'),
  noNul,
)
