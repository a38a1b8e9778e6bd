/** Turns of real agents: a conversation with one that speaks ACP, the queue of prompts, and how both end. */
import { randomUUID as newId } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { createEngine } from '../../src/index.js'
import type { Engine, Run, RunSpec } from '../../src/index.js'
import { acp, claudeStreamJson, piJson } from '../../src/protocols.js'
import type { AcpOptions } from '../../src/protocols.js'
import { acpAgent, listenTo, scriptedAgent, sharedEngine, untilStands } from '../support/agents.js'
import type { Told } from '../support/agents.js'
import { EMPTY, quickStop } from '../support/engine.js'
import { identityOf, isAlive } from '../support/proc-reader.js'
import { waitFor } from '../support/wait-for.js'

// Most of them wait most of the time.
vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const shared = sharedEngine()

interface Talk {
  readonly engine: Engine
  readonly run: Run
  readonly told: Told
}

type TalkOptions = AcpOptions & {
  readonly engine?: Engine
  readonly begins?: string
  readonly spec?: Partial<RunSpec>
}

/** A run whose agent speaks ACP, and has been given nothing unless `spec` says so. */
const talk = async ({
  engine = shared.engine,
  begins,
  spec,
  ...options
}: TalkOptions = {}): Promise<Talk> => {
  const run = await engine.start({
    command: acpAgent(begins),
    protocol: acp({ settleMs: 0, ...options }),
    turnCancelMs: 300,
    stop: quickStop,
    ...spec,
  })
  return { engine, run, told: listenTo(run, { output: 'frames' }) }
}

/** Waits until the agent has written a text. */
const untilSays = ({ told }: Talk, text: string) =>
  waitFor(() => told.of('frame').find(({ frame }) => JSON.stringify(frame).includes(text)), {
    deadlineMs: 20_000,
    what: `the agent to say ${text}`,
  })

const untilWorks = (run: Run) => untilStands(run, 'open.active.progressing')

describe.concurrent('a conversation', () => {
  it('K1, K11: each prompt has its turn, its generation and its end, in one process', async () => {
    const { run, told } = await talk()
    await untilStands(run, 'open.ready')
    expect(await run.prompt('answer')).toEqual({ generation: 2, status: 'completed' })
    const { pid } = run
    expect(await run.prompt('refuse')).toEqual({ generation: 3, status: 'failed', text: 'refusal' })
    expect(await run.prompt('fail')).toMatchObject({ generation: 4, status: 'failed' })
    expect(await run.prompt('answer')).toEqual({ generation: 5, status: 'completed' })
    expect(run.pid).toBe(pid)
    expect(run.state).toMatchObject({ work: 'open.ready', process: 'alive' })
    await told.until('turn-ended', 4)
    expect(told.of('turn-ended').map(({ generation, status }) => [generation, status])).toEqual([
      [2, 'completed'],
      [3, 'failed'],
      [4, 'failed'],
      [5, 'completed'],
    ])
  })

  it('K8, L7: an open tool is shown by its kind, and its arguments are nowhere', async () => {
    const { engine, run } = await talk({ spec: { prompt: 'tool' } })
    await waitFor(() => run.activity.openTools.length > 0, { deadlineMs: 20_000, what: 'the tool to open' })
    expect(run.activity).toMatchObject({
      isTurnOpen: true,
      generation: 1,
      openTools: [{ id: 'call-1', title: 'execute' }],
    })
    expect(await run.cancelTurn()).toEqual({ generation: 1, status: 'cancelled' })
    expect(run.activity).toMatchObject({ isTurnOpen: false, openTools: [], quietMs: null })
    expect(JSON.stringify(await engine.history(run.id))).not.toContain('/etc/secret')
  })

  it('K2: a type that no table knows is traffic, counted, and told once', async () => {
    const { engine, run, told } = await talk()
    const heard: string[] = []
    engine.subscribe((event) => {
      if (event.type === 'unknown-frame' && event.runId === run.id) heard.push(event.frameType)
    })
    expect(await run.prompt('strange')).toMatchObject({ status: 'completed' })
    await told.until('unknown-frame', 2)
    expect(told.of('unknown-frame').map(({ frameType }) => frameType)).toEqual(heard)
    expect(heard).toHaveLength(2)
    expect(Object.values(run.activity.unknownFrames)).toEqual([2, 1])
  })
})

describe.concurrent('what an agent asks of its client', () => {
  const untold = (): Promise<never> => new Promise(() => undefined)

  it.each<[string, string, AcpOptions]>([
    ['allows', 'yes', { onPermission: () => 'yes' }],
    ['refuses', 'no', { onPermission: () => Promise.resolve(null) }],
    ['chooses what was not offered', 'no', { onPermission: () => 'perhaps' }],
    [
      'never answers, and is waited for no longer than its limit',
      'no',
      { onPermission: untold, permissionTimeoutMs: 200 },
    ],
    ['throws', 'no', { onPermission: () => JSON.parse('no JSON') as string }],
    ['is not there', 'no', {}],
  ])('K9: permission: the host %s', async (_, option, options) => {
    const talking = await talk(options)
    const turn = talking.run.prompt('permission')
    await untilSays(talking, `outcome: {\\"outcome\\":\\"selected\\",\\"optionId\\":\\"${option}\\"}`)
    expect(await turn).toMatchObject({ status: 'completed' })
  })

  it('K9: while the host is asked the run says so, and a turn that is cancelled takes the question back', async () => {
    let isTakenBack = false
    const talking = await talk({
      onPermission: (_, { signal }) => {
        signal.addEventListener('abort', () => (isTakenBack = true))
        return untold()
      },
    })
    const turn = talking.run.prompt('permission')
    await waitFor(() => talking.run.activity.isWaitingForPerson, { deadlineMs: 20_000, what: 'the question' })
    expect(await talking.run.cancelTurn()).toMatchObject({ status: 'cancelled' })
    expect(await turn).toMatchObject({ status: 'cancelled' })
    expect(isTakenBack).toBe(true)
    expect(talking.run.activity.isWaitingForPerson).toBe(false)
    await untilSays(talking, 'outcome: {\\"outcome\\":\\"cancelled\\"}')
  })

  it('K13: a host that cancels the turn when it is asked is not waited for by itself', async () => {
    const box: { run?: Run } = {}
    const talking = await talk({
      onPermission: async () => {
        await box.run?.cancelTurn()
        return 'yes'
      },
    })
    box.run = talking.run
    expect(await talking.run.prompt('permission')).toMatchObject({ status: 'cancelled' })
    await untilSays(talking, String.raw`outcome: {\"outcome\":\"cancelled\"}`)
    expect(await talking.run.prompt('answer')).toMatchObject({ status: 'completed' })
  })

  it.each<[string, AcpOptions['offers'], string]>([
    [
      'offers',
      { 'fs/read_text_file': ({ params }) => ({ content: `text of ${params.path}` }) },
      'text of /any/file',
    ],
    ['does not offer', {}, '-32601 fs/read_text_file is not offered'],
  ])('K2: a file that the host %s', async (_, offers, told) => {
    const talking = await talk({ ...(offers && { offers }) })
    const turn = talking.run.prompt('read')
    await untilSays(talking, `read: ${told}`)
    expect(await turn).toMatchObject({ status: 'completed' })
  })
})

describe.concurrent('cancelling a turn', () => {
  it('K13: an agent that obeys ends its turn, and takes the next prompt', async () => {
    const { run } = await talk()
    await run.prompt('answer')
    const turn = run.prompt('obey')
    await untilStands(run, 'open.accepted')
    expect(await run.cancelTurn()).toEqual({ generation: 3, status: 'cancelled' })
    expect(await turn).toEqual({ generation: 3, status: 'cancelled' })
    expect(await run.cancelTurn()).toBeNull()
    expect(await run.prompt('answer')).toMatchObject({ generation: 4, status: 'completed' })
  })

  it('K13: a prompt and its cancel in one breath end that turn, and not the next', async () => {
    const { run } = await talk()
    await run.prompt('answer')
    const [first, cancelled, next] = await Promise.all([
      run.prompt('obey'),
      run.cancelTurn(),
      run.prompt('answer'),
    ])
    expect(first).toMatchObject({ generation: 3, status: 'cancelled' })
    expect(cancelled).toEqual(first)
    expect(next).toMatchObject({ generation: 4, status: 'completed' })
  })

  it('K11, K13: a cancel that races the end of the turn leaves one end, and the next turn whole', async () => {
    const { run, told } = await talk()
    await run.prompt('answer')
    for (let turns = 0; turns < 24; turns += 1) {
      const turn = run.prompt('answer')
      for (let looks = 0; looks < turns; looks += 1) await new Promise((resolve) => setImmediate(resolve))
      const ends = await Promise.all([run.cancelTurn(), turn])
      expect(['completed', 'cancelled']).toContain(ends[1].status)
      // Too late, there was nothing to cancel any more.
      expect([null, ends[1]]).toContainEqual(ends[0])
    }
    expect(await run.prompt('refuse')).toEqual({ generation: 27, status: 'failed', text: 'refusal' })
    await told.until('turn-ended', 26)
    expect(told.of('turn-ended').map(({ generation }) => generation)).toEqual(
      Array.from({ length: 26 }, (_, index) => index + 2),
    )
  })

  it('K11, K13: one that hangs is freed by itself for all who asked; what it completes late is dropped whole', async () => {
    const { run, told } = await talk()
    await run.prompt('answer')
    const turn = run.prompt('late')
    await waitFor(() => run.activity.openTools.length > 0, { deadlineMs: 20_000, what: 'its tool' })
    const { pid } = run
    const startedAt = performance.now()
    // This caller goes away.
    void run.cancelTurn()
    const ends = await Promise.all([run.cancelTurn(), run.cancelTurn(), turn])
    const tookMs = performance.now() - startedAt
    expect(ends).toEqual(Array(3).fill({ generation: 3, status: 'cancelled' }))
    // turnCancelMs and the time to return, 2 000 ms.
    expect(tookMs).toBeGreaterThan(2_200)
    expect(tookMs).toBeLessThan(12_000)
    expect(run.state).toMatchObject({ work: 'open.ready', process: 'alive' })
    expect(run.activity.openTools).toEqual([])
    expect(await run.prompt('overtaken')).toEqual({ generation: 4, status: 'failed', text: 'refusal' })
    expect(run.pid).toBe(pid)
    await told.until('turn-ended', 3)
    expect(told.of('turn-ended')).toHaveLength(3)
  })

  it('K13: one that cannot even read is freed too, and works again when it can', async () => {
    const { run } = await talk()
    await run.prompt('answer')
    const { pid = NaN } = run
    process.kill(pid, 'SIGSTOP')
    const turn = run.prompt('answer')
    await untilStands(run, 'open.accepted')
    expect(await run.cancelTurn()).toMatchObject({ generation: 3, status: 'cancelled' })
    expect(await turn).toMatchObject({ status: 'cancelled' })
    const next = run.prompt('answer')
    process.kill(pid, 'SIGCONT')
    expect(await next).toMatchObject({ generation: 4, status: 'completed' })
  })

  it('K13: before there is an agent to ask, the turn is freed at once', async () => {
    const { run } = await talk({ begins: 'mute' })
    const turn = run.prompt('answer')
    await untilStands(run, 'open.accepted')
    expect(await run.cancelTurn()).toMatchObject({ status: 'cancelled' })
    expect(await turn).toMatchObject({ status: 'cancelled' })
    expect(run.state.work).toBe('open.ready')
    const ends = await Promise.all([run.prompt('answer'), run.cancelTurn()])
    expect(ends).toEqual(Array(2).fill({ generation: ends[0].generation, status: 'cancelled' }))
  })

  it('K13: the only turn of a run ends the run as interrupted', async () => {
    const { run } = await talk({ spec: { prompt: 'obey', oneShot: true } })
    await untilStands(run, 'alive')
    expect(await run.cancelTurn()).toEqual({ generation: 1, status: 'cancelled' })
    expect(await run.outcome).toMatchObject({ status: 'interrupted', reason: 'the only turn was cancelled' })
  })
})

describe.concurrent('an agent that ends in the middle', () => {
  it('K13: it crashes: its exit code is the outcome, its turn and those that wait are abandoned', async () => {
    const { run, told } = await talk()
    const turns = [run.prompt('crash'), run.prompt('answer'), run.prompt('answer')]
    expect(await run.outcome).toMatchObject({ status: 'failed', exitCode: 3, reason: 'exit' })
    for (const end of await Promise.all(turns))
      expect(end).toMatchObject({ status: 'abandoned', message: expect.stringContaining('code 3') as string })
    await run.gone
    await told.ended
    expect(told.of('turn-ended')).toMatchObject([{ generation: 2, status: 'abandoned' }])
  })

  it('K1: an exit with 0 in the middle of a turn is no success, and between turns it is', async () => {
    const { engine } = shared
    const protocol = claudeStreamJson({ input: 'stream-json' })
    const [early, later] = await Promise.all([
      engine.start({ command: scriptedAgent({ hear: 1 }, { exit: 0 }), protocol, prompt: 'go' }),
      engine.start({
        command: scriptedAgent({ hear: 1 }, { say: RESULT }, { exit: 0 }),
        protocol,
        prompt: 'go',
      }),
    ])
    expect(await early.outcome).toMatchObject({
      status: 'failed',
      exitCode: 0,
      message: 'exited with code 0 before its turn was complete',
    })
    expect(await later.outcome).toMatchObject({ status: 'completed', result: { isOk: true, text: 'done' } })
  })
})

describe.concurrent('an agent that cannot be spoken to', () => {
  it.each<[string, string, string, AcpOptions]>([
    ['never answers', 'mute', 'not ready within 300 ms', { startTimeoutMs: 300 }],
    ['speaks another version', 'old', 'version 0', {}],
    ['wants somebody to sign in', 'locked', 'Authentication required', {}],
  ])('L1: one that %s fails the run and says why', async (_, begins, why, options) => {
    const { run, told } = await talk({ begins, ...options, spec: { prompt: 'answer' } })
    expect(await run.outcome).toMatchObject({ status: 'failed', code: 'session-failed', reason: 'session' })
    expect((await run.outcome).message).toContain(why)
    expect((await run.gone).evidence).toMatchObject([{ kind: EMPTY }])
    await told.ended
    expect(told.of('turn-ended')).toMatchObject([{ generation: 1, status: 'abandoned' }])
  })

  it('K11, F: one whose answers to its prompts cannot be read ends its turns badly, and none stays open', async () => {
    const answers = ['"result":{}', '"result":null', '"result":5', '"result":{"stopReason":7}']
    answers.push('"error":null', '"error":{}', '"error":5', '"result":{"stopReason":"odd"}')
    const liar = `
      const answers = ${JSON.stringify(answers)}
      const say = (id, rest) => console.log('{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',' + rest + '}')
      require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
        const { id, method } = JSON.parse(line)
        if (method === 'initialize') say(id, '"result":{"protocolVersion":1,"agentCapabilities":{}}')
        if (method === 'session/new') say(id, '"result":{"sessionId":"s"}')
        if (method === 'session/prompt') say(id, answers.shift())
      })`
    const { run } = await talk({ spec: { command: [process.execPath, '-e', liar], watchdog: false } })
    const ends = await Promise.all(answers.map(() => run.prompt('go')))
    expect(ends.map(({ status }) => status)).toEqual(answers.map(() => 'failed'))
    expect(run.state.work).toBe('open.ready')
    expect((await run.cancel()).status).toBe('confirmed')
  })

  it('L5: one that dies in the handshake has its own exit code as the outcome', async () => {
    const { run } = await talk({ begins: 'dies', spec: { prompt: 'answer' } })
    expect(await run.outcome).toMatchObject({ status: 'failed', exitCode: 1, reason: 'exit' })
  })

  it.each([
    ['cannot be spoken to', 'old'],
    ['dies in the handshake', 'dies'],
  ])(
    'INV-8, P9: when one %s, the next candidate gets the same prompt, and those that wait after it',
    async (_, begins) => {
      const { engine, run, told } = await talk({
        begins,
        spec: { prompt: 'permission', fallback: { candidates: [{ command: acpAgent() }] } },
        onPermission: () => 'yes',
      })
      expect(await run.prompt('answer')).toEqual({ generation: 3, status: 'completed' })
      await told.until('turn-ended', 2)
      expect(told.of('turn-ended')).toMatchObject([
        { generation: 2, status: 'completed' },
        { generation: 3, status: 'completed' },
      ])
      expect(await run.finish()).toMatchObject({ status: 'completed', attempt: 2 })
      await run.gone
      const [first, second] = (await engine.history(run.id)).executions
      expect(first?.confirmedAt).not.toBeNull()
      expect(first?.confirmedAt).toBeLessThanOrEqual(second?.launchedAt ?? 0)
    },
  )
})

describe.concurrent('the queue of prompts', () => {
  it('INV-11: prompts wait in order, 32 of them; the next one is refused and the others have their turns', async () => {
    const { run } = await talk({ spec: { prompt: 'obey' } })
    await untilStands(run, 'alive')
    const turns = Array.from({ length: 32 }, (_, index) => run.prompt(index % 2 === 0 ? 'answer' : 'refuse'))
    expect(run.activity.promptsWaiting).toBe(32)
    await expect(run.prompt('answer')).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringContaining('32 prompts wait already') as string,
    })
    await run.cancelTurn()
    expect(await Promise.all(turns)).toEqual(
      turns.map((_, index) => ({
        generation: index + 2,
        ...(index % 2 === 0 ? { status: 'completed' } : { status: 'failed', text: 'refusal' }),
      })),
    )
    expect(run.activity.promptsWaiting).toBe(0)
  })

  it.each<[string, string, ({ engine, run }: Talk) => Promise<unknown>]>([
    ['the run is cancelled', 'no more of it', ({ run }) => run.cancel({ reason: 'no more of it' })],
    ['the engine closes', 'closing', ({ engine }) => engine.close({ deadlineMs: 20_000 })],
    ['the agent is killed', 'SIGKILL', ({ run }) => Promise.resolve(process.kill(run.pid ?? NaN, 'SIGKILL'))],
  ])('P1: when %s, the open turn and those that wait are abandoned', async (_, why, end) => {
    await using engine = await createEngine({ database: join(shared.folder, `${newId()}.db`) })
    const talking = await talk({ engine, spec: { prompt: 'silence' } })
    const { run } = talking
    await untilWorks(run)
    const open = run.cancelTurn.bind(run)
    const turns = [run.prompt('answer'), run.prompt('answer')]
    await end(talking)
    for (const turn of await Promise.all(turns))
      expect(turn).toMatchObject({ status: 'abandoned', message: expect.stringContaining(why) as string })
    await run.outcome
    await expect(open()).rejects.toMatchObject({ code: 'refused' })
    await expect(run.prompt('answer')).rejects.toMatchObject({ code: 'refused' })
  })

  it('O10: an engine that leaves its runs abandons their prompts, and takes no more', async () => {
    const database = join(shared.folder, `${newId()}.db`)
    const engine = await createEngine({ database })
    const { run } = await talk({ engine, spec: { prompt: 'silence' } })
    await untilWorks(run)
    const leader = identityOf(run.pid ?? NaN)
    const turn = run.prompt('answer')
    await engine.close({ runs: 'leave' })
    expect(await turn).toMatchObject({ status: 'abandoned' })
    await expect(run.prompt('answer')).rejects.toMatchObject({ code: 'refused' })
    expect(leader && isAlive(leader)).toBe(true)
    // Prompts are in memory only: who takes the run up can end it, and give it none.
    await using next = await createEngine({ database })
    const taken = next.run(run.id)
    await expect(taken?.prompt('answer')).rejects.toMatchObject({ code: 'refused' })
    expect(await taken?.outcome).toMatchObject({ status: 'interrupted' })
  })

  it('P1: a prompt given before a cancel is abandoned, and one given after it refused', async () => {
    const { run } = await talk()
    await run.prompt('answer')
    const before = run.prompt('answer')
    const cancelled = run.cancel()
    await expect(run.prompt('answer')).rejects.toMatchObject({ code: 'refused' })
    expect(await before).toMatchObject({ status: 'abandoned' })
    expect((await cancelled).status).toBe('confirmed')
  })
})

describe.concurrent('what is refused', () => {
  it('K13: turns of a command that takes no prompts, by the name of its protocol', async () => {
    const { engine } = shared
    const run = await engine.start({ command: scriptedAgent({ stay: true }) })
    const saysWhy = { code: 'refused', message: expect.stringContaining('"lines"') as string }
    await expect(run.prompt('x')).rejects.toMatchObject(saysWhy)
    await expect(run.cancelTurn()).rejects.toMatchObject(saysWhy)
    await expect(run.finish()).rejects.toMatchObject(saysWhy)
    expect(() => {
      run.steer('x')
    }).toThrow(expect.objectContaining(saysWhy) as Error)
  })

  it.each<[string, Partial<RunSpec>]>([
    ['prompt', { prompt: 'x' }],
    ['prompt', { prompt: 'x', protocol: claudeStreamJson() }],
    ['prompt', { prompt: '', protocol: acp() }],
    ['stdin', { stdin: { text: 'x' }, protocol: acp() }],
    [
      'stdin',
      { protocol: piJson({ mode: 'rpc' }), fallback: { candidates: [{ command: ['true'], stdin: 'x' }] } },
    ],
    ['protocol', { protocol: { name: 'mine' } as unknown as ReturnType<typeof acp> }],
    ['turnCancelMs', { turnCancelMs: -1, protocol: acp() }],
    ['watchdog.neverStartedMs', { watchdog: { neverStartedMs: Number.NaN } }],
    ['watchdog.advisoryMs', { watchdog: { advisoryMs: -1 } }],
    ['watchdog.sleepGapMs', { watchdog: { sleepGapMs: 0 } }],
    ['watchdog.patience', { watchdog: { patience: 1 } as RunSpec['watchdog'] & object }],
  ])('L1: an option %s that makes no sense, by its name', async (option, spec) => {
    const { engine } = shared
    const id = newId()
    await expect(engine.start({ id, command: ['true'], ...spec })).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringContaining(option) as string,
    })
    await expect(engine.history(id)).rejects.toMatchObject({ code: 'unknown-run' })
  })

  it('K1: steering a turn that is not open, or an agent that takes nothing while it works', async () => {
    const { run } = await talk({ spec: { prompt: 'obey' } })
    await untilStands(run, 'alive')
    expect(() => {
      run.steer('more')
    }).toThrow(expect.objectContaining({ code: 'refused' }) as Error)
  })
})

const DELTA = { type: 'stream_event', event: { type: 'content_block_delta' } }
const RESULT = { type: 'result', subtype: 'success', is_error: false, result: 'done' }

describe.concurrent('more input', () => {
  it('K1, L7: steering reaches the agent within its turn, and starts the silence anew; no input is on record', async () => {
    const { engine } = shared
    const run = await engine.start({
      command: scriptedAgent({ hear: 1 }, { say: DELTA }, { hear: 1 }, { say: RESULT }, { hearEnd: true }),
      protocol: claudeStreamJson({ input: 'stream-json' }),
      prompt: 'my s3cret',
      oneShot: true,
    })
    await untilWorks(run)
    await waitFor(() => (run.activity.quietMs ?? 0) > 50, { deadlineMs: 20_000, what: 'some silence' })
    const quietMs = run.activity.quietMs ?? NaN
    run.steer('more of my s3cret')
    expect(run.activity.quietMs).toBeLessThan(quietMs)
    expect(await run.outcome).toMatchObject({ status: 'completed', result: { isOk: true, text: 'done' } })
    expect(JSON.stringify(await engine.history(run.id))).not.toContain('s3cret')
  })
})

describe.concurrent('a run without a first prompt', () => {
  it('K5: is ready, and silence means nothing until there is one', async () => {
    const { engine, run } = await talk({ spec: { watchdog: { neverStartedMs: 200 } } })
    const isOld = () => engine.live().some(({ runId, ageMs }) => runId === run.id && ageMs > 1_000)
    await waitFor(isOld, { deadlineMs: 20_000, what: 'a second to pass' })
    expect(run.state).toMatchObject({ work: 'open.ready', process: 'alive' })
    expect(run.activity).toMatchObject({ quietMs: null, isTurnOpen: false })
    await run.prompt('hang')
    expect((await run.outcome).status).toBe('failed-never-started')
  })
})

describe.concurrent('finishing', () => {
  it('K1: the prompts that wait have their turns, then the agent leaves with 0', async () => {
    const { run, told } = await talk({ spec: { prompt: 'answer' } })
    const turns = [run.prompt('refuse'), run.prompt('answer')]
    const outcome = run.finish()
    await expect(run.prompt('answer')).rejects.toMatchObject({ code: 'refused' })
    expect((await Promise.all(turns)).map(({ status }) => status)).toEqual(['failed', 'completed'])
    expect(await outcome).toMatchObject({ status: 'completed', exitCode: 0, reason: 'exit' })
    await run.gone
    await told.ended
    expect(told.of('turn-ended')).toHaveLength(3)
    await expect(run.finish()).rejects.toMatchObject({ code: 'refused' })
  })

  it('K13: a turn can be cancelled while the run waits to finish', async () => {
    const { run } = await talk()
    await run.prompt('answer')
    const turns = [run.prompt('obey'), run.prompt('answer')]
    const outcome = run.finish()
    await untilStands(run, 'open.accepted')
    expect(await run.cancelTurn()).toMatchObject({ status: 'cancelled' })
    expect((await Promise.all(turns)).map(({ status }) => status)).toEqual(['cancelled', 'completed'])
    expect(await outcome).toMatchObject({ status: 'completed', exitCode: 0 })
  })

  it('K1: a run that was given nothing completes, whether or not its agent was there yet', async () => {
    const [early, later] = [await talk(), await talk()]
    const outcomes = [early.run.finish()]
    await untilStands(later.run, 'alive')
    outcomes.push(later.run.finish())
    for (const outcome of await Promise.all(outcomes)) expect(outcome).toMatchObject({ status: 'completed' })
    await Promise.all([early.run.gone, later.run.gone])
  })

  it('K1: a run for one prompt finishes with its turn, well or not, and takes no other', async () => {
    const [well, badly, unasked] = await Promise.all([
      talk({ spec: { prompt: 'answer', oneShot: true } }),
      talk({ spec: { prompt: 'refuse', oneShot: true } }),
      talk({ spec: { oneShot: true } }),
    ])
    await expect(well.run.prompt('answer')).rejects.toMatchObject({ code: 'refused' })
    const turn = unasked.run.prompt('answer')
    await expect(unasked.run.prompt('answer')).rejects.toMatchObject({ code: 'refused' })
    expect(await turn).toMatchObject({ status: 'completed' })
    expect(await well.run.outcome).toMatchObject({ status: 'completed', exitCode: 0 })
    expect(await unasked.run.outcome).toMatchObject({ status: 'completed', exitCode: 0 })
    expect(await badly.run.outcome).toMatchObject({
      status: 'failed',
      reason: 'exit',
      result: { isOk: false, text: 'refusal' },
    })
  })
})
