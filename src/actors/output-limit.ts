/** O15: counts what a run writes, on both streams and over all its attempts, and says once that it is too much. */
import type { RunActor } from './run.actor.js'

export const limitOutput = (run: RunActor): void => {
  const max = run.policy.maxOutputBytes
  // A record of an older version has no such field.
  if (typeof max !== 'number') return
  let bytes = 0
  const stop = run.output.listen({
    chunk: (_stream, chunk) => {
      bytes += chunk.length
      if (bytes <= max) return
      stop()
      // Not automatic: it waits for the store, acts only once it is recorded, and nothing asks again.
      void run.post({ type: 'limit.exceeded', limit: 'maxOutputBytes', max })
    },
  })
}
