/** The clock of this machine. */
import type { Cancel, Clock } from '../../actors/ports.js'

/** Node fires a longer timer after 1 ms. */
const TIMER_MAX_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after: (delayMs, fire, options): Cancel => {
    let timer: NodeJS.Timeout
    const wait = (leftMs: number): void => {
      const thisMs = Math.min(leftMs, TIMER_MAX_MS)
      timer = setTimeout(() => {
        if (leftMs > thisMs) wait(leftMs - thisMs)
        else fire()
      }, thisMs)
      if (options?.isBackground === true) timer.unref()
    }
    wait(Math.max(delayMs, 0))
    return () => {
      clearTimeout(timer)
    }
  },
}
