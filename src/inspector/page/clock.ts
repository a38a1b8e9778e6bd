/** What moves by itself: once a second, or ten times where a timer is shown. */
import { signal } from '@preact/signals'
import { serverNow } from './net.js'

export const seconds = signal(Date.now())

setInterval(() => {
  seconds.value = serverNow()
}, 1_000)
