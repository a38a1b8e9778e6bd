/** Times on the command line: `500ms`, `20s`, `5m`, `1h`, `2d`. A plain number is seconds, as for sleep(1) and timeout(1). */
import { InvalidArgumentError } from 'commander'

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
type Unit = keyof typeof UNIT_MS

const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/
/** The library's own maximum. */
const MAX_MS = 3_650 * UNIT_MS.d

/** An option's argument in milliseconds; commander names the option and the value when it cannot be used. */
export const parseDuration = (text: string): number => {
  const [, number, unit = 's'] = DURATION.exec(text.trim()) ?? []
  if (number === undefined) {
    throw new InvalidArgumentError('Give a time such as 500ms, 20s, 5m or 1h; a plain number is seconds.')
  }
  const ms = Math.round(Number(number) * UNIT_MS[unit as Unit])
  if (ms > MAX_MS) throw new InvalidArgumentError('It must be at most ten years.')
  return ms
}

const two = (large: number, largeUnit: string, small: number, smallUnit: string): string =>
  `${String(large)} ${largeUnit}${small === 0 ? '' : ` ${String(small)} ${smallUnit}`}`

/** For people: `340 ms`, `5.1 s`, `12 m 3 s`, `3 h 20 m`, `2 d 4 h`. */
export const formatDuration = (ms: number): string => {
  const whole = Math.max(0, Math.round(ms))
  if (whole < 1_000) return `${String(whole)} ms`
  if (whole < UNIT_MS.m) return `${(Math.floor(whole / 100) / 10).toFixed(1)} s`
  if (whole < UNIT_MS.h)
    return two(Math.floor(whole / UNIT_MS.m), 'm', Math.floor((whole % UNIT_MS.m) / 1_000), 's')
  if (whole < UNIT_MS.d) {
    return two(Math.floor(whole / UNIT_MS.h), 'h', Math.floor((whole % UNIT_MS.h) / UNIT_MS.m), 'm')
  }
  return two(Math.floor(whole / UNIT_MS.d), 'd', Math.floor((whole % UNIT_MS.d) / UNIT_MS.h), 'h')
}
