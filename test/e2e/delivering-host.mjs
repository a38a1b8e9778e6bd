// delivering-host.mjs DATABASE INBOX HOW [CMD...]: an engine whose host writes each delivery to INBOX. HOW: `takes`, `hangs` (after it was
// written), `dies` (before it is acknowledged), `acknowledges` (in a transaction of its own, and dies before the hook returns), `finalizes`
// (dies in its finalize hook). With CMD it starts a run of it; it says `open` when its engine is.
import { appendFileSync } from 'node:fs'
import process from 'node:process'
import BetterSqlite3 from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { acknowledgeDelivery, createEngine } from '../../dist/index.js'

const [database, inbox, how, ...command] = process.argv.slice(2)

const die = async () => {
  process.kill(process.pid, 'SIGKILL')
  await new Promise(() => undefined)
}

const deliver = async ({ deliveryId, outcome, finalized }) => {
  appendFileSync(inbox, `${JSON.stringify({ deliveryId, status: outcome.status, finalized })}\n`)
  if (how === 'hangs') await new Promise(() => undefined)
  if (how === 'dies') await die()
  if (how !== 'acknowledges') return
  const db = new Kysely({ dialect: new SqliteDialect({ database: new BetterSqlite3(database) }) })
  await db.transaction().execute((trx) => acknowledgeDelivery(trx, deliveryId))
  await die()
}

const finalize = async ({ outcome }) => {
  if (how === 'finalizes') await die()
  return { by: how, status: outcome.status }
}

const engine = await createEngine({ database, delivery: { finalize, deliver } })
console.log('open')
if (command.length > 0) await engine.start({ id: 'r1', command })
process.once('SIGTERM', () => void engine.close().then(() => process.exit(0)))
setInterval(() => undefined, 1_000)
