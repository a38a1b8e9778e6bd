/** Jobs whose agents are understood: the protocol is kept by name, and made when the run is started. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { JobSpec } from '../../src/jobs.js'
import { PROTOCOL_NAMES, acp, custom, protocolNamed } from '../../src/protocols.js'
import type { Protocol } from '../../src/protocols.js'
import { acpAgent, listenTo, scriptedAgent } from '../support/agents.js'
import type { Told } from '../support/agents.js'
import { tempDir } from '../support/wait-for.js'
import { idsOf, noting, openTestQueue, quick } from './queue.js'

const DELTA = { type: 'stream_event', event: { type: 'content_block_delta' } }

const spoken = (id: string, prompt: string, extra: Partial<JobSpec> = {}): JobSpec => ({
  id,
  command: acpAgent(),
  protocol: 'acp',
  prompt,
  attempts: 1,
  stop: quick,
  ...extra,
})

describe('silence', () => {
  it('K5, O12: a job whose agent never starts fails as that, spends its attempt and frees its slot', async () => {
    const { queue, engine } = await openTestQueue({ caps: { total: 1 } })
    const file = join(tempDir(), 'notes')
    writeFileSync(file, '')
    await queue.add({
      id: 'dead',
      command: ['sleep', '600'],
      protocol: 'claude',
      watchdog: { neverStartedMs: 300 },
      attempts: 2,
      stop: quick,
    })
    await queue.add(noting(file, 'next'))
    expect(await queue.work()).toEqual({ reason: 'idle', started: 3, left: [] })
    expect(await queue.get('dead')).toMatchObject({
      state: 'exhausted',
      attemptsSpent: 2,
      attemptsLeft: 0,
      lastOutcome: { status: 'failed-never-started' },
    })
    expect(await queue.get('next')).toMatchObject({ state: 'done' })
    expect(engine.live()).toEqual([])
  })

  it('K9: the other limits reach the run of a job too, and `false` is for ever', async () => {
    const { queue } = await openTestQueue({ caps: { total: 3 } })
    const stalling = scriptedAgent({ say: DELTA }, { stay: true })
    const base = { command: stalling, protocol: 'claude', attempts: 1, stop: quick } as const
    await queue.add({ ...base, id: 'stalls', watchdog: { stalledMs: 300, neverStartedMs: false } })
    await queue.add({
      ...base,
      id: 'limited',
      watchdog: { neverStartedMs: false, advisoryMs: false },
      limits: { timeoutMs: 1_500 },
    })
    await queue.add({ ...base, id: 'unwatched', watchdog: false, limits: { timeoutMs: 1_500 } })
    await queue.work()
    expect((await queue.get('stalls')).lastOutcome).toMatchObject({ status: 'failed-stalled' })
    for (const id of ['limited', 'unwatched'])
      expect((await queue.get(id)).lastOutcome).toMatchObject({ status: 'interrupted' })
    expect((await queue.history('limited')).spec).toMatchObject({
      protocol: 'claude',
      watchdog: { neverStartedMs: null, advisoryMs: null },
    })
  })
})

describe('prompts', () => {
  it('K1, L7: a job with a prompt over acp completes with its one turn; the prompt is shown nowhere', async () => {
    const { queue, engine } = await openTestQueue()
    const secret = 'a-secret-that-no-list-shows'
    await queue.add(spoken('a', 'answer', { title: 'ask' }))
    await queue.add(spoken('b', secret))
    const told: Told[] = []
    const work = queue.work({ onRun: (run) => told.push(listenTo(run)) })
    expect(await work).toMatchObject({ reason: 'idle', started: 2 })
    expect(await queue.get('a')).toMatchObject({ state: 'done', lastOutcome: { status: 'completed' } })
    expect(told[0]?.of('turn-ended')).toHaveLength(1)
    const histories = [await queue.history('a'), await queue.history('b')]
    expect(histories.map(({ spec }) => [spec.protocol, spec.promptBytes])).toEqual([
      ['acp', 6],
      ['acp', secret.length],
    ])
    const runs = await engine.runs()
    expect(JSON.stringify([histories, await queue.list(), runs])).not.toContain(secret)
  })

  it('K9: what the agent of a job is told when it asks is kept with its protocol', async () => {
    const { queue } = await openTestQueue()
    for (const permissions of ['allow', 'refuse'] as const)
      await queue.add(
        spoken(permissions, 'permission', { protocol: { name: 'acp', options: { permissions } } }),
      )
    const told: Told[] = []
    await queue.work({ onRun: (run) => told.push(listenTo(run, { output: 'lines' })) })
    const answers = told.map(({ all }) => /outcome: .*?optionId\W+(\w+)/.exec(JSON.stringify(all))?.[1])
    expect(await queue.count()).toMatchObject({ done: 2 })
    expect(answers).toEqual(['yes', 'no'])
  })
})

describe('names', () => {
  it('K2: every name of the table makes its protocol, and no other name does', async () => {
    for (const name of PROTOCOL_NAMES)
      expect(await protocolNamed(name)).toMatchObject({ open: expect.any(Function) as unknown })
    for (const name of ['nope', 'constructor', ''])
      await expect(protocolNamed(name)).rejects.toMatchObject({ code: 'invalid-option' })
    await expect(protocolNamed('codex', { permissions: 'allow' })).rejects.toThrow(
      'protocol codex: unknown option permissions',
    )
    await expect(protocolNamed('acp', { settleMs: NaN })).rejects.toThrow(
      'protocol acp: option settleMs must be',
    )
    await expect(protocolNamed('pi-rpc', { permissions: 'maybe' as 'allow' })).rejects.toThrow(
      'option permissions must',
    )
  })

  it("O11: a host's own protocol is made by its name for each run, with the options of the job", async () => {
    const made: unknown[] = []
    const mine = (options: Readonly<Record<string, unknown>>): Protocol => {
      made.push(options)
      return custom({
        name: 'mine',
        classify: (line) => (line === options['end'] ? { is: 'completed', isOk: true } : 'progress'),
      })
    }
    const { queue } = await openTestQueue({ protocols: { mine, acp: () => acp() } })
    await queue.add({
      id: 'a',
      command: ['sh', '-c', 'echo working; echo over'],
      protocol: { name: 'mine', options: { end: 'over' } },
      stop: quick,
    })
    expect(await queue.work()).toMatchObject({ started: 1 })
    expect(await queue.get('a')).toMatchObject({ state: 'done', attemptsSpent: 1 })
    expect(made).toEqual([{ end: 'over' }])
    expect((await queue.history('a')).spec.protocol).toBe('mine')
  })

  it('O11: a protocol that cannot be had blocks its job with the reason, and the next one runs', async () => {
    const { queue } = await openTestQueue({
      protocols: {
        broken: () => {
          throw new Error('no licence')
        },
        nothing: () => ({}) as Protocol,
        spoken: () => acp(),
      },
    })
    const cases: readonly (readonly [string, RegExp])[] = [
      ['unheard', /speaks the protocol "unheard", and this queue was opened without one of that name/],
      ['constructor', /speaks the protocol "constructor"/],
      ['broken', /protocol broken could not be made: no licence/],
      ['nothing', /option protocol must be a protocol/],
      ['spoken', /option prompt must be given: protocol spoken takes prompts/],
    ]
    for (const [protocol] of cases) await queue.add({ id: protocol, command: ['true'], protocol })
    await queue.add({ id: 'next', command: ['true'] })
    expect(await queue.work()).toMatchObject({ reason: 'idle', started: 1 })
    for (const [id, reason] of cases)
      expect(await queue.get(id)).toMatchObject({
        state: 'blocked',
        reason: expect.stringMatching(reason) as string,
        attemptsSpent: 0,
      })
    expect(idsOf(await queue.list({ states: ['done'] }))).toEqual(['next'])
  })
})

describe('the door', () => {
  const secret = 'hunter2'
  it.each<[string, Partial<JobSpec>, RegExp]>([
    ['a prompt without a protocol', { prompt: secret }, /option prompt has no use: protocol lines takes no/],
    ['a prompt for claude', { protocol: 'claude', prompt: secret }, /protocol claude takes no prompts/],
    ['no prompt for acp', { protocol: 'acp' }, /option prompt must be given: protocol acp takes prompts/],
    ['an empty prompt', { protocol: 'acp', prompt: '' }, /option prompt must not be empty/],
    ['stdin for acp', { protocol: 'acp', prompt: 'x', stdin: secret }, /option stdin has no use/],
    [
      'an option of another',
      { protocol: { name: 'pi-rpc', options: { modeId: 'x' } }, prompt: 'x' },
      /unknown option protocol\.options\.modeId/,
    ],
    [
      'an option with a wrong value',
      { protocol: { name: 'acp', options: { settleMs: -1 } }, prompt: 'x' },
      /option protocol\.options\.settleMs must not be negative, got -1/,
    ],
    [
      'a secret of a server',
      { protocol: { name: 'acp', options: { mcpServers: secret } }, prompt: 'x' },
      /option protocol\.options\.mcpServers must be Array$/,
    ],
    [
      'what is no data',
      { protocol: { name: 'mine', options: { f: () => 1 } } },
      /option protocol\.options must be data that JSON can hold/,
    ],
    ['a protocol as code', { protocol: acp(), prompt: 'x' }, /unknown option protocol\.|option protocol/],
    [
      'a limit that is none',
      { watchdog: { neverStartedMs: -1 } },
      /option watchdog\.neverStartedMs must not be negative, got -1/,
    ],
  ])('O11: add refuses %s and names it', async (_what, extra, message) => {
    const { queue } = await openTestQueue()
    const adding = queue.add({ command: ['true'], ...extra })
    await expect(adding).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringMatching(message) as string,
    })
    await expect(adding).rejects.not.toThrow(secret)
  })
})
