/**
 * The end of a simulated world: from whatever it has come to, a fair one must lead to the end of every run (liveness).
 *
 * Owns: the fair world, and what must have come of everything by its end.
 */
import type { Slot, World } from './world.js'

const SETTLE_MS = 5_000
/** Two rounds of the longest wait between two kills. */
const PATIENCE_MS = 660_000
const STOP_OPTIONS = { by: 'end', timeoutMs: 20_000 }

export interface Stuck {
  readonly what: string
}

const livingSlots = ({ slots }: World): Slot[] =>
  slots.filter((slot): slot is Slot => slot != null && !slot.host.life.isOver && !slot.isClosing)

/** Time passes until that holds; false when it does not within that time. */
const comesTrue = async (world: World, holds: () => boolean, withinMs: number): Promise<boolean> => {
  const { simulation } = world
  return simulation.until(holds, withinMs).then(
    () => true,
    () => false,
  )
}

/** Closes the engines one after the other, or not: each way of ending must do. */
const closeSome = async (world: World, stuck: Stuck[]): Promise<void> => {
  const isAll = world.plan.jobs.length > 0 || world.plan.seed % 2 === 0
  for (const slot of isAll ? livingSlots(world) : []) {
    let isClosed = false
    void world.close(slot, 'cancel').then(() => {
      isClosed = true
    })
    if (!(await comesTrue(world, () => isClosed, 60_000)))
      stuck.push({ what: 'an engine that does not close' })
  }
}

const stopAll = async (world: World, slot: Slot): Promise<void> => {
  let isAnswered = false
  const act = () => slot.host.engine.stop({ all: true }, STOP_OPTIONS)
  void world.stop(slot, 'stop all', act).then(() => {
    isAnswered = true
  })
  await comesTrue(world, () => isAnswered, 60_000)
}

/** What dead engines had claimed is given back by who works the queue, and all that may be started is done. */
const workAll = async (world: World, slot: Slot, stuck: Stuck[]): Promise<void> => {
  if (world.jobsAdded.size === 0) return
  let isOver = false
  const work = async (): Promise<unknown> => {
    await slot.queue.release()
    return slot.queue.work()
  }
  void world.call('work at the end', slot, work).then(() => {
    isOver = true
  })
  if (!(await comesTrue(world, () => isOver, PATIENCE_MS))) stuck.push({ what: 'work that does not end' })
}

const judgeRuns = (world: World, stuck: Stuck[]): void => {
  const { witness } = world
  for (const { id, head, taken, isAcknowledged } of witness.runs.values()) {
    const { work, process, delivery, doneAt } = head
    if (doneAt === null) stuck.push({ what: `${id} is ${work}, ${process}, ${delivery}` })
    witness.claim(witness.aliveOf(id) === 0 || doneAt === null, 'INV-4', `${id} is done, and lives`)
    if (doneAt === null || delivery === 'suppressed') continue
    witness.claim(taken > 0 && isAcknowledged, 'INV-12', `${id} is done, and the host has nothing of it`)
  }
}

const judgeJobs = async (world: World, { queue }: Slot, stuck: Stuck[]): Promise<void> => {
  const { witness } = world
  for (const id of world.jobsAdded) {
    const { state, attemptsSpent } = await queue.get(id)
    if (state === 'active') stuck.push({ what: `${id} is active` })
    const runs = [...witness.runs.values()].filter(({ job }) => job === id).length
    witness.claim(
      attemptsSpent === runs,
      'O12',
      `${id} had ${String(runs)} runs and spent ${String(attemptsSpent)}`,
    )
  }
}

/** An order that nobody settles keeps its fence. Those of dead engines are lifted by who comes after them. */
const judgeOrders = async (world: World, { host }: Slot, stuck: Stuck[]): Promise<void> => {
  const living = livingSlots(world).map((slot) => slot.host.engine.id)
  const open = await host.store.openOrders()
  for (const { orderId, owner } of open)
    if (living.includes(owner)) stuck.push({ what: `order ${orderId} is not settled` })
}

export const endFairly = async (world: World): Promise<readonly Stuck[]> => {
  const { simulation, witness } = world
  const stuck: Stuck[] = []
  world.makeFair()
  witness.say('fair')
  await simulation.advance(SETTLE_MS)
  // An engine that was still being opened.
  world.makeFair()
  await comesTrue(world, () => world.slots.every((slot) => slot?.isClosing !== true), 60_000)
  await closeSome(world, stuck)
  const [slot = await world.openSlot(0)] = livingSlots(world)
  await stopAll(world, slot)
  await workAll(world, slot, stuck)
  const isOver = (): boolean => [...witness.runs.values()].every(({ head }) => head.doneAt !== null)
  if (!(await comesTrue(world, isOver, PATIENCE_MS))) await stopAll(world, slot)
  judgeRuns(world, stuck)
  // The longest call has its own deadline.
  const isAnswered = (): boolean =>
    [...world.calls].every(({ name, host }) => host.life.isOver || name.startsWith('work'))
  await comesTrue(world, isAnswered, 40_000)
  await simulation.advance(SETTLE_MS)
  await judgeJobs(world, slot, stuck)
  await judgeOrders(world, slot, stuck)
  for (const { name, host } of world.calls)
    if (!host.life.isOver && !name.startsWith('work')) stuck.push({ what: `${name} is not answered` })
  for (const one of livingSlots(world))
    witness.claim(!one.host.errors.includes('a chart failed'), 'F', 'a chart failed')
  await simulation.close()
  return stuck
}
