/** S5: what the actors need of a store holds on every database, by the same tests. */
import { Kysely, Migrator, sql } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ActorWrite } from '../../../src/actors/store.ports.js'
import { createEngine } from '../../../src/index.js'
import { SCHEMA_VERSION, migrations } from '../../../src/postgres.js'
import { usePostgres } from '../../support/postgres.js'
import { databasesOn } from '../../support/stores.js'
import { engineRow, engineWrite, orderWrite, requestedLine, runWrite } from '../../support/writes.js'

const server = usePostgres()

const refused = (scope: object): ActorWrite => orderWrite('o-fence', 0, { scope, isFenced: true })

describe.each(databasesOn(server).map((one) => [one.name, one] as const))(
  'on %s',
  (_name, { name, why, open, dialect }) => {
    if (why !== null) {
      it(`S5: the suite of the store passes on ${name}`, ({ skip }) => skip(why))
      return
    }

    describe('commits', () => {
      it('S3: a stale revision or owner changes nothing, and does not hold up the others of its batch', async () => {
        const store = await open()
        expect(await store.commit([runWrite('a', 0), runWrite('b', 0)], [])).toEqual([
          'committed',
          'committed',
        ])
        const verdicts = await store.commit(
          [
            runWrite('a', 5, { write: { expectedRev: 4 } }),
            runWrite('b', 1, { write: { owner: 'e2' } }),
            runWrite('b', 1),
            runWrite('a', 1),
            runWrite('a', 2, { write: { snapshot: '{"two":2}' } }),
          ],
          [],
        )
        expect(verdicts).toEqual(['stale', 'stale', 'committed', 'committed', 'committed'])
        expect(await store.loadActor('run', 'a')).toEqual({
          owner: 'e1',
          rev: 2,
          machineVersion: 1,
          snapshot: '{"two":2}',
        })
        expect((await store.transitionsOf('run', 'a')).map(({ rev }) => rev)).toEqual([0, 1, 2])
        expect((await store.transitionsOf('run', 'b')).map(({ rev }) => rev)).toEqual([0, 1])
      })

      it('INV-13: a batch that is given again after a lost answer is committed, and nothing is written twice', async () => {
        const store = await open()
        const batches: readonly (readonly ActorWrite[])[] = [
          [engineWrite('e1', 0), runWrite('a', 0), orderWrite('o', 0)],
          // Two of one actor: when the first is given again, the second stands on it.
          [
            runWrite('a', 1),
            orderWrite('o', 1, { lines: [requestedLine('a', 'e2')] }),
            runWrite('a', 2),
            engineWrite('e1', 1),
          ],
        ]
        for (const batch of batches) {
          const once = await store.commit(batch, [])
          expect(new Set(once)).toEqual(new Set(['committed']))
          expect(await store.commit(batch, [])).toEqual(once)
        }
        // What came in between does not make an early write stale either.
        expect(await store.commit([runWrite('a', 1)], [])).toEqual(['committed'])
        expect((await store.transitionsOf('run', 'a')).map(({ rev }) => rev)).toEqual([0, 1, 2])
        expect(await store.filedLines('e2')).toHaveLength(1)
        expect(await store.loadActor('registry', 'e1')).toMatchObject({ rev: 1 })
      })

      it('S3: a write that is in is not its actor’s any more once another engine has taken it', async () => {
        const store = await open()
        await store.commit([runWrite('a', 0)], [])
        expect(await store.takeOver(['a'], 'e1', 'e2')).toEqual(['a'])
        expect(await store.commit([runWrite('a', 0)], [])).toEqual(['exists'])
        expect(await store.commit([runWrite('a', 1)], [])).toEqual(['stale'])
      })

      it('L8: an id is used once, whoever comes second', async () => {
        const store = await open()
        const other = runWrite('a', 0, { write: { owner: 'e2' } })
        const verdicts = await Promise.all([store.commit([runWrite('a', 0)], []), store.commit([other], [])])
        expect(verdicts.flat().sort()).toEqual(['committed', 'exists'])
      })

      it('K16: a launch inside the scope of a fence in force is refused, and leaves nothing', async () => {
        const store = await open()
        await store.commit([refused({ task: 't1' })], [])
        const inside = runWrite('a', 0, { row: { task: 't1' } })
        expect(await store.commit([inside, runWrite('b', 0, { row: { task: 't2' } })], [])).toEqual([
          'fenced',
          'committed',
        ])
        expect(await store.loadRun('a')).toBeNull()
        expect(await store.transitionsOf('run', 'a')).toEqual([])
        await store.abandonOrder('o-fence', 5)
        expect(await store.openOrders()).toEqual([])
        expect(await store.commit([inside], [])).toEqual(['committed'])
      })

      it('K16: a fence of labels is judged by the run’s own', async () => {
        const store = await open()
        await store.commit([refused({ labels: { user: 'x' } })], [])
        const of = (user: string): ActorWrite => runWrite(user, 0, { row: { labels: { user } } })
        expect(await store.commit([of('x'), of('y')], [])).toEqual(['fenced', 'committed'])
      })

      it('F: an error of the data itself does not pass, and nothing of its batch is in', async () => {
        const store = await open()
        const broken = runWrite('b', 0, { write: { snapshot: undefined as unknown as string } })
        const error = await store.commit([runWrite('a', 0), broken], []).catch((reason: unknown) => reason)
        expect(store.isPassing(error)).toBe(false)
        expect(store.isInDoubt(error)).toBe(false)
        expect(await store.loadRun('a')).toBeNull()
      })
    })

    describe('rows', () => {
      it('S5: whole numbers come back as numbers, exact up to 2⁵³, and what is null stays null', async () => {
        const store = await open()
        const limit = 2 ** 52 + 281_474_976_710_655
        const identity = { pid: 4_194_304, startTicks: 2 ** 53 - 1, bootId: 'b', pidNamespace: 'pid:[1]' }
        const execution = { attempt: 1, marks: { cookie: 'c', limit }, containment: 'group+marks' as const }
        await store.commit(
          [
            runWrite('a', 0, { rows: { executions: [{ ...execution, requestedAt: 1_800_000_000_123 }] } }),
            runWrite('a', 1, {
              head: { lastProgressAt: 2 ** 45 + 1 },
              rows: {
                executions: [
                  { attempt: 1, identity, exitedAt: 7, exit: { exitCode: null, signal: 'SIGKILL' } },
                ],
              },
            }),
          ],
          [],
        )
        const [found] = await store.executionsOf(['a', 'nowhere'])
        expect(found).toEqual({
          runId: 'a',
          ...execution,
          identity,
          logPath: null,
          requestedAt: 1_800_000_000_123,
          exitedAt: 7,
          exit: { exitCode: null, signal: 'SIGKILL' },
          survivors: [],
        })
        expect((await store.loadRun('a'))?.head).toMatchObject({
          lastProgressAt: 2 ** 45 + 1,
          settledAt: null,
        })
        await store.commit([engineWrite('e1', 0)], [])
        expect(await store.listEngines()).toEqual([engineRow('e1')])
      })

      it('S5: text comes back as it was, in any script and with any character that JSON escapes', async () => {
        const store = await open()
        const labels = { 'ключ "☂"': `a\u0000b\\'\n\u2028 𝌆` }
        await store.commit([runWrite('a', 0, { row: { labels, session: "o'brien ☂" } })], [])
        expect((await store.loadRun('a'))?.row).toMatchObject({ labels, session: "o'brien ☂" })
        expect(await store.listRuns({ scope: { session: "o'brien ☂" } })).toHaveLength(1)
      })

      it('R4: effects are pending until they are marked done, and in order', async () => {
        const store = await open()
        const effects = [0, 1, 2].map((index) => ({ index, kind: `k${index}`, body: '{"n":1}' }))
        const write = runWrite('a', 0)
        await store.commit([{ ...write, journal: { ...write.journal, effects } }], [])
        const mark = { kind: 'run', actor: 'a', rev: 0, index: 1, startedAt: 3, doneAt: 4 } as const
        await store.commit([], [mark])
        expect(await store.pendingEffectsOf('run', ['a'])).toEqual([
          { actor: 'a', rev: 0, index: 0, kind: 'k0', body: '{"n":1}' },
          { actor: 'a', rev: 0, index: 2, kind: 'k2', body: '{"n":1}' },
        ])
        const [first] = await store.transitionsOf('run', 'a')
        expect(first?.effects).toEqual([
          { kind: 'k0', params: { n: 1 }, startedAt: null, doneAt: null },
          { kind: 'k1', params: { n: 1 }, startedAt: 3, doneAt: 4 },
          { kind: 'k2', params: { n: 1 }, startedAt: null, doneAt: null },
        ])
      })

      it('R3: a timer is replaced by its id, and cleared', async () => {
        const store = await open()
        const timer = { id: 't', token: '0', dueAt: 10, delayMs: 5, event: 'x' }
        const rest = { ...timer, id: 'u' }
        await store.commit([runWrite('a', 0, { write: { timersSet: [timer, rest] } })], [])
        await store.commit(
          [runWrite('a', 1, { write: { timersSet: [{ ...timer, token: '1' }], timersCleared: ['u'] } })],
          [],
        )
        expect(await store.timersOf('run', ['a'])).toEqual([{ actor: 'a', ...timer, token: '1' }])
      })

      it('K8: a notice is there once for its generation, and can be withdrawn', async () => {
        const store = await open()
        const notice = { kind: 'advisory', text: 'quiet', generation: 1, at: 5 }
        await store.commit([runWrite('a', 0, { rows: { notices: [notice] } })], [])
        await store.commit([runWrite('a', 1, { rows: { notices: [{ ...notice, text: 'again' }] } })], [])
        await store.commit([runWrite('a', 2, { rows: { withdrawsNotices: 1 } })], [])
        expect(await store.noticesOf('a')).toEqual([{ ...notice, withdrawnAt: expect.any(Number) as number }])
      })
    })

    describe('shared by engines', () => {
      it('R5: of many that take a run over at once, one gets it', async () => {
        const store = await open()
        await store.commit([runWrite('a', 0)], [])
        const taken = await Promise.all(['x', 'y', 'z', 'w'].map((to) => store.takeOver(['a'], 'e1', to)))
        expect(taken.flat()).toHaveLength(1)
        expect(await store.openRunsOfOthers('e1')).toHaveLength(1)
      })

      it('INV-11: a filed line is seen by its engine until it is answered, and the first answer stands', async () => {
        const store = await open()
        await store.commit(
          [orderWrite('o', 0, { lines: [requestedLine('a', 'e2'), requestedLine('b', null)] })],
          [],
        )
        expect(await store.filedLines('e1')).toEqual([])
        expect(await store.filedLines('e2')).toEqual([
          {
            orderId: 'o',
            runId: 'a',
            mode: 'cancel',
            isForced: false,
            reason: 'because',
            by: 'test',
            requestedAt: 1_700_000_000_000,
          },
        ])
        const { owner: _owner, ...line } = requestedLine('a', 'e2')
        await store.answerLine('o', { ...line, status: 'confirmed' })
        await store.answerLine('o', { ...line, status: 'unconfirmed' })
        expect(await store.filedLines('e2')).toEqual([])
        expect((await store.linesOf('o')).map(({ status }) => status).sort()).toEqual([
          'confirmed',
          'requested',
        ])
        expect((await store.ordersOf('a')).map(({ orderId }) => orderId)).toEqual(['o'])
      })

      it('R5: a heartbeat moves the engine’s time and the progress of its own runs, and no other’s', async () => {
        const store = await open()
        await store.commit(
          [engineWrite('e1', 0), runWrite('a', 0), runWrite('b', 0, { write: { owner: 'e2' } })],
          [],
        )
        await store.heartbeat('e1', 99, [
          { runId: 'b', lastProgressAt: 7 },
          { runId: 'a', lastProgressAt: 7 },
        ])
        expect((await store.listEngines())[0]?.heartbeatAt).toBe(99)
        expect((await store.loadRun('a'))?.head.lastProgressAt).toBe(7)
        expect((await store.loadRun('b'))?.head.lastProgressAt).toBeNull()
      })
    })

    describe('reading and pruning', () => {
      it('K14: runs are found by what they were given, in the order in which they were made', async () => {
        const store = await open()
        const of = (id: string, createdAt: number, row: object): ActorWrite =>
          runWrite(id, 0, { row: { createdAt, ...row } })
        await store.commit(
          [
            of('b', 1, { task: 't1', labels: { user: 'x' } }),
            of('a', 2, { task: 't1', session: 's', labels: { user: 'y' } }),
            of('c', 3, { session: 's', labels: { user: 'x' } }),
          ],
          [],
        )
        const ids = async (filter: Parameters<typeof store.listRuns>[0]): Promise<string[]> =>
          (await store.listRuns(filter)).map(({ row }) => row.id)
        expect(await ids({})).toEqual(['b', 'a', 'c'])
        expect(await ids({ scope: { task: 't1' } })).toEqual(['b', 'a'])
        expect(await ids({ scope: { session: 's', labels: { user: 'x' } } })).toEqual(['c'])
        expect(await ids({ scope: { runIds: ['c', 'nowhere'] } })).toEqual(['c'])
        expect(await ids({ limit: 2 })).toEqual(['b', 'a'])
      })

      it('S4: prune removes done runs settled before a time, however many, and never one that is not confirmed', async () => {
        const store = await open()
        const done = { settledAt: 10, doneAt: 11 }
        const writes = Array.from({ length: 1_100 }, (_, n) => runWrite(`r${n}`, 0, { head: done }))
        for (let from = 0; from < writes.length; from += 256)
          await store.commit(writes.slice(from, from + 256), [])
        await store.commit(
          [
            runWrite('late', 0, { head: { settledAt: 30, doneAt: 31 } }),
            runWrite('unconfirmed', 0, { head: { settledAt: 10, doneAt: null } }),
          ],
          [],
        )
        expect(await store.prune(10)).toBe(0)
        expect(await store.prune(20)).toBe(1_100)
        expect((await store.listRuns({})).map(({ row }) => row.id).sort()).toEqual(['late', 'unconfirmed'])
        expect(await store.transitionsOf('run', 'r7')).toEqual([])
        expect(await store.transitionsOf('run', 'late')).toHaveLength(1)
      }, 60_000)
    })

    describe('migrations', () => {
      it('S1: a host runs the exported ones in its own migrator, and gives its own Kysely instance', async () => {
        const kysely = new Kysely<{ own: { id: number } }>({ dialect: await dialect() })
        onTestFinished(() => kysely.destroy())
        await expect(createEngine({ kysely })).rejects.toThrow(/run the exported migrations/)
        await kysely.schema.createTable('own').addColumn('id', 'integer').execute()
        const provider = { getMigrations: () => Promise.resolve({ ...migrations }) }
        // Kysely looks for its own tables by name in every schema unless it is told which.
        const place =
          name === 'PostgreSQL'
            ? {
                migrationTableName: `host_${process.pid}_migration`,
                migrationLockTableName: `host_${process.pid}_lock`,
              }
            : {}
        const migrator = new Migrator({ db: kysely, provider, ...place })
        expect((await migrator.migrateToLatest()).error).toBeUndefined()
        const engine = await createEngine({ kysely })
        const run = await engine.start({ command: ['true'] })
        expect((await run.outcome).status).toBe('completed')
        await engine.close()
        // The host's connection is the host's: still open.
        expect(await kysely.selectFrom('own').selectAll().execute()).toEqual([])
        await sql`update runwarden_meta set value = ${String(SCHEMA_VERSION + 1)}`.execute(kysely)
        await expect(createEngine({ kysely })).rejects.toMatchObject({ code: 'store-too-new' })
      })

      it('S1: a dialect of the host is migrated and closed with the engine', async () => {
        const engine = await createEngine({ dialect: await dialect() })
        const run = await engine.start({ command: ['true'] })
        expect((await run.outcome).status).toBe('completed')
        await engine.close()
      })
    })
  },
)
