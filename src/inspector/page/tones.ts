/** How a state looks: one of a few tones, each with a meaning. */

export type Tone = 'idle' | 'live' | 'warn' | 'stopping' | 'alarm' | 'good' | 'bad' | 'over' | 'paused'

const TONES: Readonly<Record<string, Tone>> = {
  accepted: 'idle',
  waiting: 'idle',
  launching: 'idle',
  pending: 'idle',
  active: 'live',
  progressing: 'live',
  alive: 'live',
  ready: 'live',
  finishing: 'live',
  finalizing: 'live',
  delivering: 'live',
  'stalled-advisory': 'warn',
  retrying: 'warn',
  paused: 'paused',
  frozen: 'paused',
  'paused (incomplete)': 'warn',
  interrupting: 'stopping',
  'cancel-requested': 'stopping',
  asking: 'stopping',
  'term-sent': 'stopping',
  'kill-sent': 'stopping',
  unconfirmed: 'alarm',
  completed: 'good',
  confirmed: 'good',
  delivered: 'good',
  failed: 'bad',
  'failed-never-started': 'bad',
  'failed-stalled': 'bad',
  lost: 'bad',
  interrupted: 'over',
  cancelled: 'over',
  suppressed: 'over',
  gone: 'over',
}

/** Of a headline, or of a state by its path. */
export const toneOf = (state: string): Tone => {
  if (state.endsWith('(unconfirmed)')) return 'alarm'
  if (state.endsWith('(stopping)')) return 'stopping'
  return TONES[state] ?? TONES[state.split('.').at(-1) ?? ''] ?? 'idle'
}

const NEEDS_A_LOOK: ReadonlySet<Tone> = new Set(['warn', 'alarm'])

export const needsALook = (headline: string): boolean => NEEDS_A_LOOK.has(toneOf(headline))
