/** The engine that works the queue may die at any moment: no job is lost, none runs twice, each ended run spent one attempt. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createEngine } from '../../src/index.js'
import { openJobList } from '../../src/jobs.js'
import type { JobList } from '../../src/jobs.js'
import { cli, start } from '../cli/cli.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const ROUNDS = Number(process.env['RUNWARDEN_WORKER_KILL_ROUNDS'] ?? 4)
const JOBS = ['a', 'b', 'c', 'd', 'e', 'f']
/** More than the kills of a round can spend. */
const ATTEMPTS = 50

/**
 * Holds a lock while it runs; a second run of the job beside it would say so. It works for a moment, so that the kill meets jobs in
 * every phase.
 */
const jobScript = (folder: string, id: string): string =>
  [
    `cd '${folder}'`,
    // A lock whose process is gone is one of a run that was killed.
    `if mkdir lock-${id} 2>/dev/null; then :; elif kill -0 "$(cat lock-${id}/pid)" 2>/dev/null; then echo ${id} twice >> faults; fi`,
    `echo $$ > lock-${id}/pid; echo ${id} >> began; sleep 0.1; echo ${id} >> ended; rm -r lock-${id}`,
  ].join('\n')

const linesIn = (file: string): string[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')

/** Every run on record that has ended spent one attempt of its job, and no other attempt was spent. */
const expectAttemptsCounted = async (list: JobList, database: string, what: string): Promise<void> => {
  await using engine = await createEngine({ database, recover: false })
  const runs = await engine.runs()
  for (const id of JOBS) {
    const { job, transitions } = await list.history(id)
    const own = runs.filter(({ task, settledAt }) => task === id && settledAt !== null)
    const settled = transitions.filter(({ event }) => event === 'run.settled')
    expect([job.attemptsSpent, job.attemptsLeft], what).toEqual([own.length, ATTEMPTS - own.length])
    expect(settled, what).toHaveLength(own.length)
  }
}

const play = async (random: () => number, what: string): Promise<void> => {
  const folder = tempDir()
  const database = join(folder, 'runs.db')
  for (const file of ['began', 'ended', 'faults']) writeFileSync(join(folder, file), '')
  await using list = await openJobList({ database })
  await list.addAll(
    JOBS.map((id) => ({
      id,
      command: ['sh', '-c', jobScript(folder, id)],
      attempts: ATTEMPTS,
      stop: { termGraceMs: 300 },
    })),
  )
  const args = ['jobs', 'work', '--no-guardian', '--db', database, '--total', '2']
  for (let kills = 0; kills < 3; kills += 1) {
    const worker = start(args)
    // The first moment is that of the first claim; from there on, any.
    await waitFor(
      async () =>
        worker.text() !== '' || (await list.count()).active > 0 || (await list.count()).pending === 0,
      {
        deadlineMs: 60_000,
        what: `${what}: something is claimed`,
      },
    )
    const killAt = performance.now() + random() * 500
    await waitFor(() => performance.now() >= killAt, { deadlineMs: 5_000, what: 'the moment' })
    worker.kill('SIGKILL')
    await worker.ended
    const open = await list.list()
    const stand = open.map(({ jobId }) => jobId)
    expect(stand, `${what}: places are kept`).toEqual(JOBS.filter((id) => stand.includes(id)))
  }
  const last = await cli(args)
  expect(last.code, `${what}: ${last.stderr}`).toBe(0)
  expect(linesIn(join(folder, 'faults')), what).toEqual([])
  expect(await list.count(), what).toMatchObject({ done: JOBS.length, active: 0, pending: 0 })
  const ended = linesIn(join(folder, 'ended'))
  for (const id of JOBS) expect(ended, `${what}: ${id} was done`).toContain(id)
  await expectAttemptsCounted(list, database, what)
}

it(`INV-13, O13: ${ROUNDS} times SIGKILL of the worker at random moments: jobs stand in their places, attempts are counted once, none runs twice`, async () => {
  const seed = Number(process.env['RUNWARDEN_SEED'] ?? Date.now() % 1_000_000)
  const random = seededRandom(seed)
  for (let round = 0; round < ROUNDS; round += 1) await play(random, `seed ${seed}, round ${round}`)
}, 900_000)

it('O13: the last job of a worker that was killed comes back, and the next worker waits for it', async () => {
  const folder = tempDir()
  const database = join(folder, 'runs.db')
  const first = join(folder, 'first')
  await using list = await openJobList({ database })
  // The first time it stays until it is ended; the second time it is done.
  await list.add({
    id: 'last',
    command: ['sh', '-c', `[ -e '${first}' ] && exit 0; touch '${first}'; trap '' TERM; exec sleep 100`],
    attempts: 3,
    stop: { termGraceMs: 300 },
  })
  const args = ['jobs', 'work', '--no-guardian', '--db', database]
  const worker = start(args)
  await waitFor(() => existsSync(first), { deadlineMs: 60_000, what: 'the job is under way' })
  worker.kill('SIGKILL')
  await worker.ended
  expect((await cli(args)).code).toBe(0)
  expect(await list.count()).toMatchObject({ done: 1, active: 0, pending: 0 })
}, 120_000)
