/** The embedded store: what can be wrong with a SQLite file. What holds on every database is in store.test.ts. */
import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { SqliteDialect } from 'kysely'
import { describe, expect, it } from 'vitest'
import { createEngine } from '../../../src/index.js'
import { SCHEMA_VERSION } from '../../../src/sqlite.js'
import { openTestEngine } from '../../support/engine.js'
import { tempDir } from '../../support/wait-for.js'

describe('opening', () => {
  it.each<[string, (folder: string) => string, RegExp]>([
    ['a missing folder', (folder) => join(folder, 'no', 'runs.db'), /the folder .*\/no does not exist/],
    ['a folder in place of the file', (folder) => folder, /it is not a file/],
    [
      'a file that is no database',
      (folder) => {
        const path = join(folder, 'x.db')
        writeFileSync(path, 'this is a text, and not a short one: '.repeat(50))
        return path
      },
      /the file is not a SQLite database/,
    ],
  ])('S2: %s is a clear error that names the path', async (_what, place, message) => {
    const database = place(tempDir())
    const opening = createEngine({ database })
    await expect(opening).rejects.toMatchObject({
      code: 'store-unavailable',
      message: expect.stringMatching(message) as string,
    })
    await expect(opening).rejects.toThrow(database)
  })

  it('S2: a file that may not be read is a clear error', async (context) => {
    if (process.getuid?.() === 0) context.skip('root reads everything')
    const database = join(tempDir(), 'runs.db')
    writeFileSync(database, '')
    chmodSync(database, 0o000)
    await expect(createEngine({ database })).rejects.toMatchObject({ code: 'store-unavailable' })
  })

  it('S2: exactly one store must be named', async () => {
    await expect(createEngine({})).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringContaining('got none') as string,
    })
    const dialect = new SqliteDialect({ database: new BetterSqlite3(':memory:') })
    await expect(createEngine({ database: ':memory:', dialect })).rejects.toThrow('got database and dialect')
  })

  it('S2: a new file is for its owner only', async () => {
    const database = join(tempDir(), 'runs.db')
    await openTestEngine({ database })
    expect(statSync(database).mode & 0o777).toBe(0o600)
  })
})

describe('migrations', () => {
  it('S1: a store newer than the library is refused, untouched', async () => {
    const database = join(tempDir(), 'runs.db')
    await (await createEngine({ database })).close()
    const file = new BetterSqlite3(database)
    file
      .prepare("update runwarden_meta set value = ? where name = 'schema-version'")
      .run(String(SCHEMA_VERSION + 1))
    const before = file.prepare('select count(*) as n from runwarden_engine').get()
    await expect(createEngine({ database })).rejects.toMatchObject({ code: 'store-too-new' })
    expect(file.prepare('select count(*) as n from runwarden_engine').get()).toEqual(before)
    file.close()
  })

  it('S1: opening again changes nothing, and several engines may open a new file at once', async () => {
    const database = join(tempDir(), 'runs.db')
    await Promise.all([1, 2, 3, 4].map(() => openTestEngine({ database })))
    const engine = await openTestEngine({ database })
    expect(await engine.runs()).toEqual([])
  })
})

describe('retention', () => {
  it('S4: prune removes done runs settled before a time, and never one that is not confirmed', async () => {
    const engine = await openTestEngine()
    const done = await engine.start({ id: 'done', command: ['true'] })
    await done.gone
    const open = await engine.start({ id: 'open', command: ['sleep', '60'] })
    expect(await engine.prune({ settledBefore: Date.now() - 3_600_000 })).toBe(0)
    expect(await engine.prune({ settledBefore: Date.now() + 3_600_000 })).toBe(1)
    expect((await engine.runs()).map(({ runId }) => runId)).toEqual([open.id])
    await expect(engine.history('done')).rejects.toMatchObject({ code: 'unknown-run' })
    expect((await engine.history('open')).transitions.length).toBeGreaterThan(0)
    await open.cancel({ force: true })
  })
})

describe('runs and filters', () => {
  it('K14: runs are found by what they were given, in the order in which they were made', async () => {
    const engine = await openTestEngine()
    for (const [id, task, user] of [
      ['a', 't1', 'x'],
      ['b', 't1', 'y'],
      ['c', 't2', 'x'],
    ] as const) {
      await (
        await engine.start({ id, task, labels: { user }, command: ['true'] })
      ).gone
    }
    const idsOf = async (query: Parameters<typeof engine.runs>[0]): Promise<string[]> =>
      (await engine.runs(query)).map(({ runId }) => runId)
    expect(await idsOf({})).toEqual(['a', 'b', 'c'])
    expect(await idsOf({ scope: { task: 't1' } })).toEqual(['a', 'b'])
    expect(await idsOf({ scope: { labels: { user: 'x' } } })).toEqual(['a', 'c'])
    expect(await idsOf({ scope: { task: 't1', labels: { user: 'x' } } })).toEqual(['a'])
    expect(await idsOf({ onlyOpen: true })).toEqual([])
    expect(await idsOf({ limit: 2 })).toEqual(['a', 'b'])
  })
})

it('S2: a store in a folder that was made read-only is a clear error', async (context) => {
  if (process.getuid?.() === 0) context.skip('root writes everywhere')
  const folder = join(tempDir(), 'ro')
  mkdirSync(folder, { mode: 0o500 })
  await expect(createEngine({ database: join(folder, 'runs.db') })).rejects.toMatchObject({
    code: 'store-unavailable',
  })
})
