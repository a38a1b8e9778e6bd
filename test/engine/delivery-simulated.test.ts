/** Deliveries in time: deadlines, repetitions, a store that does not answer. Simulated clock and processes, a real store in memory. */
import { describe, expect, it } from 'vitest'
import type { Delivery, StopReceipt } from '../../src/index.js'
import { turns } from '../../src/testing/simulated-clock.js'
import { openSimulatedEngine } from '../support/simulated-engine.js'
import { busy } from '../../src/testing/simulated-store.js'

const S = 1_000

/** A hook that answers when the test says so. */
const heldHook = () => {
  const calls: { readonly delivery: Delivery; answer: () => void; readonly signal: AbortSignal }[] = []
  return {
    calls,
    deliver: (delivery: Delivery, { signal }: { readonly signal: AbortSignal }): Promise<void> =>
      new Promise((resolve) => calls.push({ delivery, signal, answer: resolve })),
  }
}

describe('a delivery that is not taken', () => {
  it('INV-12, INV-11: is repeated after 5 s, 30 s, 2 min and then every 5 min, under one id, until it is', async () => {
    const at: number[] = []
    const ids = new Set<string>()
    const { start, processes, clock } = await openSimulatedEngine({
      delivery: {
        deliver: ({ deliveryId }) => {
          at.push(clock.monotonicMs())
          ids.add(deliveryId)
          if (at.length < 7) throw new Error('later')
        },
      },
    })
    await clock.advance(1)
    const run = await start({})
    processes.last.exit(0)
    await clock.advance(1_100 * S)
    const waits = at.slice(1).map((ms, index) => ms - (at[index] ?? 0))
    expect(waits).toEqual([5 * S, 30 * S, 120 * S, 300 * S, 300 * S, 300 * S])
    expect([...ids]).toEqual([`${run.id}/result`])
    expect(run.state.delivery).toBe('delivered')
    await clock.advance(1_000 * S)
    expect(at).toHaveLength(7)
  })

  it('P17, INV-11: is given up at its deadline; what its hook says then changes nothing, and the next is the one that counts', async () => {
    const { calls, deliver } = heldHook()
    const { start, processes, clock } = await openSimulatedEngine({
      delivery: { deliver, deliverDeadlineMs: 10 * S },
    })
    await clock.advance(1)
    const run = await start({})
    processes.last.exit(0)
    await clock.advance(200)
    expect(calls).toHaveLength(1)
    await clock.advance(10 * S)
    expect(run.state.delivery).toBe('retrying')
    expect(calls[0]?.signal.aborted).toBe(true)
    calls[0]?.answer()
    await turns()
    expect(run.state.delivery).toBe('retrying')
    await clock.advance(5 * S)
    expect(calls).toHaveLength(2)
    calls[1]?.answer()
    await turns()
    expect(run.state.delivery).toBe('delivered')
  })

  it('S2, INV-12: a store that does not answer is no answer of the host: asked again when it does', async () => {
    const { calls, deliver } = heldHook()
    const { start, processes, clock, store } = await openSimulatedEngine({ delivery: { deliver } })
    await clock.advance(1)
    const run = await start({})
    processes.last.exit(0)
    await clock.advance(200)
    const release = store.hold()
    calls[0]?.answer()
    await clock.advance(60 * S)
    expect(run.state.delivery).toBe('delivering')
    release()
    await turns()
    expect(run.state.delivery).toBe('delivered')
    expect(calls).toHaveLength(1)

    const other = await start({})
    store.trouble = busy()
    processes.last.exit(0)
    await clock.advance(60 * S)
    // INV-1: nothing is delivered before its outcome is on record.
    expect(calls).toHaveLength(1)
    store.trouble = null
    await clock.advance(10 * S)
    expect(calls).toHaveLength(2)
    calls[1]?.answer()
    await turns()
    expect(other.state.delivery).toBe('delivered')
  })
})

describe('whatever never answers', () => {
  it('INV-11, INV-5: a kill that never settles and a finalize that never returns: each answer at its deadline, and none flips', async () => {
    const deliveries: Delivery[] = []
    const { start, processes, clock, engine } = await openSimulatedEngine({
      delivery: {
        finalizeDeadlineMs: 20 * S,
        finalize: () => new Promise(() => undefined),
        deliver: (delivery) => void deliveries.push(delivery),
      },
    })
    await clock.advance(1)
    const run = await start({ stop: { termGraceMs: 5 * S, killGraceMs: 2 * S } })
    // It waits for a disk that never answers.
    processes.last.diesOf = []
    const receipts: { readonly at: number; readonly receipt: StopReceipt }[] = []
    const asked = clock.monotonicMs()
    void run.cancel({ reason: 'one' }).then((receipt) => {
      receipts.push({ at: clock.monotonicMs() - asked, receipt })
    })
    await clock.advance(20 * S)
    expect(receipts).toHaveLength(1)
    expect(receipts[0]?.at).toBeLessThanOrEqual(12 * S)
    const given = structuredClone(receipts[0]?.receipt)
    expect(given).toMatchObject({ status: 'unconfirmed', runs: [{ status: 'unconfirmed', work: 'open' }] })
    expect(given?.runs[0]?.survivors).toHaveLength(1)
    // P8: nothing is delivered while the tree is there.
    expect(run.state).toMatchObject({ isSettled: false, delivery: 'pending' })
    processes.last.diesOf = ['SIGKILL']
    await clock.advance(40 * S)
    expect(run.state).toMatchObject({ isSettled: true, isConfirmed: true, delivery: 'finalizing' })
    expect(receipts[0]?.receipt).toEqual(given)
    const late = await run.cancel()
    expect(late.runs[0]?.status).toBe('already-terminal')
    await clock.advance(20 * S)
    expect(deliveries).toMatchObject([
      { outcome: { status: 'cancelled' }, finalizeError: 'finalize did not answer within 20000 ms' },
    ])
    expect(run.state.delivery).toBe('delivered')
    expect(engine.live()).toEqual([])
  })
})
