/** Numbers as people read them. */

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const two = (value: number): string => String(Math.floor(value)).padStart(2, '0')

/** `340 ms`, `4.2 s`, `3 m 05 s`, `2 h 07 m`, `3 d 4 h`. */
export const duration = (ms: number): string => {
  const rest = Math.max(0, ms)
  if (rest < SECOND) return `${String(Math.round(rest))} ms`
  if (rest < 10 * SECOND) return `${(rest / SECOND).toFixed(1)} s`
  if (rest < MINUTE) return `${String(Math.floor(rest / SECOND))} s`
  if (rest < HOUR) return `${String(Math.floor(rest / MINUTE))} m ${two((rest % MINUTE) / SECOND)} s`
  if (rest < DAY) return `${String(Math.floor(rest / HOUR))} h ${two((rest % HOUR) / MINUTE)} m`
  return `${String(Math.floor(rest / DAY))} d ${String(Math.floor((rest % DAY) / HOUR))} h`
}

/** In whole seconds: what is shown in a column that moves every second. */
export const age = (ms: number): string =>
  ms < SECOND ? '0 s' : ms < MINUTE ? `${String(Math.floor(ms / SECOND))} s` : duration(ms)

/** Of a timer: tenths while it matters. */
export const countdown = (ms: number): string =>
  ms <= 0 ? 'due' : ms < MINUTE ? `${(ms / SECOND).toFixed(1)} s` : duration(ms)

const KIB = 1024

export const bytes = (count: number): string => {
  if (count < KIB) return `${String(count)} B`
  if (count < KIB * KIB) return `${String(Math.round(count / KIB))} KiB`
  if (count < KIB ** 3) return `${(count / KIB ** 2).toFixed(1)} MiB`
  return `${(count / KIB ** 3).toFixed(2)} GiB`
}

export const timeOfDay = (at: number): string => new Date(at).toLocaleTimeString([], { hour12: false })

/** `xstate.after.termGrace.run.process.term-sent` is the timer `termGrace`. */
export const eventName = (event: string): string => event.replace(/^xstate\.after\.([^.]+)\..*$/, 'after $1')

/** `open.active.progressing`, as a way through the states. */
export const statePath = (path: string): string => path.split('.').join(' › ')
