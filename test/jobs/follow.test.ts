/** Who follows the queue is told of the states that a job goes through, also those of the engine's own runs. */
import { expect, it } from 'vitest'
import { waitFor } from '../support/wait-for.js'
import { openTestQueue, quick } from './queue.js'

it('O11: a subscriber of the queue that is worked sees a job run, and come back', async () => {
  const { queue, engine } = await openTestQueue()
  const told: string[] = []
  queue.subscribe(({ job }) => told.push(`${job?.state ?? ''} ${job?.phase ?? ''}`))
  await queue.add({ id: 'a', command: ['sleep', '600'], stop: quick })
  const leave = new AbortController()
  const work = queue.work({ signal: leave.signal })
  await waitFor(() => told.includes('active running'), { deadlineMs: 20_000, what: 'it is told to run' })
  await waitFor(() => engine.live().length > 0, { deadlineMs: 20_000, what: 'it runs' })
  leave.abort()
  await work
  await queue.caughtUp()
  expect(told.at(-1)).toBe('pending ')
})
