/** What the page may do to a run: what any host may, in the name of who looks. */
import * as v from 'valibot'
import { RunwardenError } from '../index.js'
import type { Engine, StopReceipt } from '../index.js'
import { problemOf } from './problem.js'
import { ACTS } from './wire.js'
import type { ActAnswer, ActRequest } from './wire.js'

const REASON_CHARS_MAX = 500

const schema = v.strictObject({
  run: v.pipe(v.string(), v.nonEmpty()),
  act: v.picklist(ACTS),
  reason: v.optional(v.pipe(v.string(), v.maxLength(REASON_CHARS_MAX)), ''),
})

const BY = 'inspector'

const carryOut = async (engine: Engine, { run, act, reason = '' }: ActRequest): Promise<StopReceipt> => {
  const order = { by: BY, reason }
  switch (act) {
    case 'pause':
      return engine.pause({ run }, order)
    case 'resume':
      return engine.resume({ run }, order)
    case 'interrupt':
      return engine.stop({ run }, { ...order, mode: 'interrupt' })
    case 'cancel':
      return engine.stop({ run }, { ...order, mode: 'cancel' })
    case 'force': {
      // INV-3: of a settled run only the process is ended.
      const [known] = await engine.runs({ scope: { run } })
      const isSettled = known !== undefined && known.settledAt !== null
      return engine.stop({ run }, { ...order, mode: isSettled ? 'terminate' : 'cancel', force: true })
    }
  }
}

/** Answers when the receipt is given. Never rejects. */
export const act = async (engine: Engine, body: string): Promise<ActAnswer> => {
  try {
    const parsed = v.safeParse(schema, JSON.parse(body))
    if (!parsed.success) {
      const [issue] = parsed.issues
      throw new RunwardenError('invalid-option', `act: ${v.getDotPath(issue) ?? ''} ${issue.message}`)
    }
    return { receipt: await carryOut(engine, parsed.output) }
  } catch (error) {
    return { error: problemOf(error, 'invalid-option') }
  }
}
