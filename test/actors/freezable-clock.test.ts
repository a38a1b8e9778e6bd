/** Waits that stand still while the agent is frozen, on a clock that moves only when told to. */
import { expect, it } from 'vitest'
import { FreezableClock } from '../../src/actors/freezable-clock.js'
import { SimulatedClock } from '../../src/testing/simulated-clock.js'

const freezable = () => {
  const base = new SimulatedClock()
  const clock = new FreezableClock(base)
  const fired: string[] = []
  const wait = (name: string, delayMs: number) =>
    clock.after(delayMs, () => {
      fired.push(name)
    })
  return { base, clock, fired, wait }
}

it('O7: what is left of a wait is waited for after the freeze, and no more', async () => {
  const { base, clock, fired, wait } = freezable()
  wait('long', 1_000)
  wait('short', 600)
  await base.advance(400)
  clock.setFrozen(true)
  expect(base.armed).toBe(0)
  await base.advance(1_000_000)
  clock.setFrozen(false)
  await base.advance(199)
  expect(fired).toEqual([])
  await base.advance(1)
  expect(fired).toEqual(['short'])
  await base.advance(399)
  expect(fired).toEqual(['short'])
  await base.advance(1)
  expect(fired).toEqual(['short', 'long'])
  expect(base.armed).toBe(0)
})

it('O7: several freezes leave a wait its whole time, and a repeated call changes nothing', async () => {
  const { base, clock, fired, wait } = freezable()
  wait('it', 1_000)
  for (let round = 0; round < 9; round += 1) {
    await base.advance(100)
    clock.setFrozen(true)
    clock.setFrozen(true)
    await base.advance(5_000)
    clock.setFrozen(false)
    clock.setFrozen(false)
  }
  await base.advance(99)
  expect(fired).toEqual([])
  await base.advance(1)
  expect(fired).toEqual(['it'])
})

it('O7: a wait that begins in a freeze begins to count with its end', async () => {
  const { base, clock, fired, wait } = freezable()
  clock.setFrozen(true)
  wait('it', 1_000)
  await base.advance(60_000)
  clock.setFrozen(false)
  await base.advance(999)
  expect(fired).toEqual([])
  await base.advance(1)
  expect(fired).toEqual(['it'])
})

it('O7: a wait that was given up fires never, frozen or not', async () => {
  const { base, clock, fired, wait } = freezable()
  const before = wait('before', 100)
  clock.setFrozen(true)
  const within = wait('within', 100)
  before()
  within()
  clock.setFrozen(false)
  const after = wait('after', 100)
  after()
  after()
  await base.advance(1_000)
  expect(fired).toEqual([])
  expect(base.armed).toBe(0)
})

it('O7: a wait that was due when the freeze came fires after it, once', async () => {
  const { base, clock, fired, wait } = freezable()
  wait('it', 100)
  base.skip(150)
  clock.setFrozen(true)
  await base.advance(1_000)
  expect(fired).toEqual([])
  clock.setFrozen(false)
  await base.advance(0)
  expect(fired).toEqual(['it'])
})

it('O7: what a wait does may freeze the clock, or wait again', async () => {
  const { base, clock, fired, wait } = freezable()
  clock.after(100, () => {
    clock.setFrozen(true)
    wait('again', 100)
  })
  wait('other', 300)
  await base.advance(10_000)
  expect(fired).toEqual([])
  clock.setFrozen(false)
  await base.advance(100)
  expect(fired).toEqual(['again'])
  await base.advance(100)
  expect(fired).toEqual(['again', 'other'])
})

it('O7: the times it tells are those of the clock below it', async () => {
  const { base, clock } = freezable()
  clock.setFrozen(true)
  await base.advance(1_234)
  expect([clock.monotonicMs(), clock.wallMs()]).toEqual([base.monotonicMs(), base.wallMs()])
})
