/** The stop-order chart, explored exhaustively: every resolution of a scope of two runs, every answer, in every order. */
import { expect, test } from 'vitest'
import { stopOrderMachine } from '../../../src/machines/stop-order/stop-order.machine.js'
import { describe as figuresOf, explore, reaching } from '../../model/explorer.js'
import { faultsOf, judgeFaults } from '../../model/faults.js'
import { isSettled, stopOrderChecks, stopOrderModel } from '../../model/stop-order.js'

const exploration = explore(stopOrderModel(), { maxStates: 20_000 })
console.log(figuresOf(exploration))

const asked = new Set<string>()
const holds = (id: string) => {
  asked.add(id)
  return () => {
    expect(exploration.violations.filter((violation) => violation.id === id)).toEqual([])
  }
}

test('INV-11: a line that was answered never changes, and answers for others are not taken', holds('INV-11'))
test('INV-3: a settled order takes no event', holds('INV-3'))
test('INV-5: confirmed is said only where each run it covered is proven gone', holds('INV-5'))
test('K14: nothing to stop, confirmed, unconfirmed and refused are told apart', holds('K14'))
test(
  'K15: an order settles when every line is answered, and a failed lookup is never nothing to stop',
  holds('K15'),
)
test('P16: an order that names what is not there is refused with its reason', holds('P16'))

test('INV-11: from every state an order comes to its verdict by answers alone', () => {
  const live = reaching(exploration, isSettled, ({ event }) => event.type !== 'order.refused')
  expect(live.size).toBe(exploration.nodes.length)
})

test('INV-11: every check of the stop-order model is asked for by a test of its rule', () => {
  expect(stopOrderChecks.filter(({ id }) => !asked.has(id))).toEqual([])
})

test('INV-11: every guard that always says yes or no, and every action left out, breaks a claim', () => {
  const { table, survivors } = judgeFaults(faultsOf(stopOrderMachine), stopOrderModel)
  console.log(`mutants of the stop-order chart:\n${table}`)
  expect(survivors).toEqual([])
})
