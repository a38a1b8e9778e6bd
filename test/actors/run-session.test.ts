/** The conversation of one attempt, with a protocol that does what a test says. */
import { describe, expect, it } from 'vitest'
import type {
  OpenTool,
  ProtocolIo,
  ProtocolReply,
  ProtocolSession,
  ProtocolSink,
} from '../../src/actors/ports.js'
import { RunSession } from '../../src/actors/run-session.js'
import type { SessionNews } from '../../src/actors/run-session.js'
import type { RunMessage } from '../../src/actors/run.actor.js'
import { ProgressClock } from '../../src/internal.js'
import { SimulatedClock, turns } from '../../src/testing/simulated-clock.js'

const OK: ProtocolReply = { isOk: true }
const failed = (message: string): ProtocolReply => ({ isOk: false, message })
const MINUTE = 60_000

/** A protocol session that notes what it is asked, and answers when and what a test likes. */
class ScriptedSession implements ProtocolSession {
  readonly asked: string[] = []
  readonly sink: ProtocolSink
  io: ProtocolIo | null = null
  openTools: readonly OpenTool[] = []
  unknownFrames: ReadonlyMap<string, number> = new Map()
  answer: (what: string) => Promise<ProtocolReply> = () => Promise.resolve(OK)
  onPush: (text: string) => void = () => undefined

  constructor(sink: ProtocolSink) {
    this.sink = sink
  }

  push(_stream: string, chunk: Buffer): void {
    this.onPush(chunk.toString())
  }

  end(): void {
    this.asked.push('end')
  }

  start(io: ProtocolIo): Promise<ProtocolReply> {
    this.io = io
    return this.#ask('start')
  }

  prompt(text: string): Promise<ProtocolReply> {
    return this.#ask(`prompt ${text}`)
  }

  cancelTurn(): boolean {
    this.asked.push('cancelTurn')
    return true
  }

  steer(text: string): boolean {
    this.asked.push(`steer ${text}`)
    return true
  }

  #ask(what: string): Promise<ProtocolReply> {
    this.asked.push(what)
    return this.answer(what)
  }
}

class Talk {
  readonly clock = new SimulatedClock()
  readonly posted: RunMessage[] = []
  readonly news: SessionNews[] = []
  readonly prompts = new Map<number, string>([[1, 'hello']])
  readonly silences: string[] = []
  readonly progress: ProgressClock
  readonly session: RunSession
  protocol!: ScriptedSession
  hasExited = false

  constructor({ attempt = 1, generation = 1 } = {}) {
    this.progress = new ProgressClock(
      this.clock,
      {
        neverStartedMs: 5 * MINUTE,
        advisoryMs: 5 * MINUTE,
        stalledMs: null,
        stalledToolMs: null,
        completionSignalMs: 10 * MINUTE,
        sleepGapMs: 30_000,
      },
      {
        progressed: () => undefined,
        passed: (silence) => {
          this.silences.push(silence)
          return Promise.resolve(true)
        },
        hasOpenTool: () => false,
        cpuUsedMs: () => Promise.resolve(null),
      },
    )
    this.session = this.open(attempt, generation)
    this.progress.begin(attempt, generation)
  }

  /** Another attempt over the same run. */
  open(attempt: number, generation: number): RunSession {
    return new RunSession({
      attempt,
      generation,
      protocol: {
        name: 'scripted',
        hasWatchdog: true,
        isInteractive: true,
        open: (sink) => {
          this.protocol = new ScriptedSession(sink)
          return this.protocol
        },
      },
      maxLineBytes: 1_024,
      clock: this.clock,
      progress: this.progress,
      post: (message) => this.posted.push(message),
      tell: (told) => this.news.push(told),
      wantsLines: () => false,
      onLine: () => undefined,
      promptOf: (wanted) => this.prompts.get(wanted) ?? null,
    })
  }

  begin(session = this.session): Promise<void> {
    return session.begin({ cwd: '/work', write: () => true, hasExited: () => this.hasExited })
  }

  get types(): string[] {
    return this.posted.map(({ type }) => type)
  }

  get epoch(): number {
    return this.progress.stamp.epoch
  }
}

/** Answers that come when a test gives them. */
const later = (protocol: ScriptedSession): Map<string, (reply: ProtocolReply) => void> => {
  const give = new Map<string, (reply: ProtocolReply) => void>()
  protocol.answer = (what) =>
    new Promise((resolve) => {
      give.set(what, resolve)
    })
  return give
}

describe('handshake and prompt', () => {
  it.each(['before', 'after'])(
    'K11: the prompt is given once, after the handshake, when its turn was called for %s the agent was there',
    async (when) => {
      const talk = new Talk()
      const give = later(talk.protocol)
      if (when === 'before') void talk.session.dispatch(1)
      void talk.begin()
      if (when === 'after') void talk.session.dispatch(1)
      await turns(1)
      expect(talk.protocol.asked).toEqual(['start'])
      give.get('start')?.(OK)
      await turns(1)
      expect(talk.protocol.asked).toEqual(['start', 'prompt hello'])
      give.get('prompt hello')?.(OK)
      await turns(1)
      expect(talk.posted).toEqual([])
    },
  )

  it('K11: a dispatch that comes twice gives its prompt once', async () => {
    const talk = new Talk()
    await talk.begin()
    await talk.session.dispatch(1)
    // As the chart may call for it again after a recovery: the turn is the agent's already.
    talk.prompts.delete(1)
    await talk.session.dispatch(1)
    expect(talk.protocol.asked).toEqual(['start', 'prompt hello'])
  })

  it('K1: the silence of a turn counts from the moment its prompt goes out', async () => {
    const talk = new Talk()
    const give = later(talk.protocol)
    void talk.begin()
    void talk.session.dispatch(1)
    await talk.clock.advance(4 * MINUTE)
    expect(talk.progress.quietMs).toBe(4 * MINUTE)
    give.get('start')?.(OK)
    await turns(1)
    expect(talk.progress.quietMs).toBe(0)
    expect(talk.epoch).toBe(0)
    await talk.clock.advance(5 * MINUTE - 1)
    expect(talk.silences).toEqual([])
    await talk.clock.advance(1)
    expect(talk.silences).toEqual(['silent'])
  })

  it('K5: a handshake that never ends gives no prompt, and its silence is told', async () => {
    const talk = new Talk()
    later(talk.protocol)
    void talk.begin()
    void talk.session.dispatch(1)
    await talk.clock.advance(5 * MINUTE)
    expect(talk.protocol.asked).toEqual(['start'])
    expect(talk.silences).toEqual(['silent'])
    expect(talk.posted).toEqual([])
  })

  it('K19: a handshake that ends when the attempt is over gives no prompt, and fails nothing', async () => {
    for (const reply of [OK, failed('too late')]) {
      const talk = new Talk()
      const give = later(talk.protocol)
      void talk.begin()
      void talk.session.dispatch(1)
      talk.session.end()
      give.get('start')?.(reply)
      await talk.clock.advance(MINUTE)
      expect(talk.protocol.asked).toEqual(['start', 'end'])
      expect(talk.posted).toEqual([])
    }
  })

  it('K11: a prompt whose turn is over when the handshake ends is not given', async () => {
    const talk = new Talk()
    const give = later(talk.protocol)
    void talk.begin()
    void talk.session.dispatch(1)
    talk.prompts.clear()
    give.get('start')?.(OK)
    await turns(1)
    expect(talk.protocol.asked).toEqual(['start'])
  })

  it('F: a protocol without a handshake and without prompts is no fault', async () => {
    const talk = new Talk()
    Object.assign(talk.protocol, {
      start: undefined,
      prompt: undefined,
      steer: undefined,
      cancelTurn: undefined,
    })
    await talk.begin()
    await talk.session.dispatch(1)
    talk.session.abort(1)
    talk.session.askToEnd()
    expect(talk.session.steer('x')).toBe(false)
    await talk.clock.advance(MINUTE)
    expect(talk.posted).toEqual([])
  })
})

describe('an agent that cannot be spoken to', () => {
  const THROWS = 'it threw'
  const FAULTS: readonly [string, (what: string) => Promise<ProtocolReply>][] = [
    ['says no', () => Promise.resolve(failed(THROWS))],
    ['rejects', () => Promise.reject(new Error(THROWS))],
    [
      'throws',
      () => {
        throw new Error(THROWS)
      },
    ],
  ]

  it.each(FAULTS)('F: a handshake that %s fails the attempt, after a moment, once', async (_, answer) => {
    const talk = new Talk()
    talk.protocol.answer = answer
    await talk.session.dispatch(1)
    await talk.begin()
    await talk.clock.advance(999)
    expect(talk.posted).toEqual([])
    await talk.clock.advance(MINUTE)
    expect(talk.posted).toEqual([
      {
        type: 'session.failed',
        attempt: 1,
        message: `the agent cannot be spoken to: ${THROWS}`,
        isFallbackEligible: false,
      },
    ])
    expect(talk.protocol.asked).toEqual(['start'])
  })

  it.each(FAULTS)('F: a prompt that the protocol %s fails the attempt, once', async (_, answer) => {
    const talk = new Talk()
    await talk.begin()
    talk.protocol.answer = answer
    await talk.session.dispatch(1)
    talk.prompts.set(2, 'again')
    await talk.session.dispatch(2)
    await talk.clock.advance(MINUTE)
    expect(talk.types).toEqual(['session.failed'])
  })

  it('L5: an agent that is gone when the prompt fails ended by itself: its exit says more', async () => {
    const talk = new Talk()
    talk.protocol.answer = () => Promise.resolve(failed('broken pipe'))
    await talk.begin()
    await talk.clock.advance(500)
    talk.hasExited = true
    await talk.clock.advance(MINUTE)
    expect(talk.posted).toEqual([])
  })

  it('L5: so is one whose output has ended', async () => {
    const talk = new Talk()
    talk.protocol.answer = () => Promise.resolve(failed('broken pipe'))
    await talk.begin()
    const waits = talk.clock.armed
    talk.session.end()
    expect(talk.clock.armed, 'a wait for what has come').toBe(waits - 1)
    await talk.clock.advance(MINUTE)
    expect(talk.posted).toEqual([])
  })

  it('INV-11: what a protocol says of its failure is cut', async () => {
    const talk = new Talk()
    talk.protocol.answer = () => Promise.resolve(failed('x'.repeat(1_000_000)))
    await talk.begin()
    await talk.clock.advance(MINUTE)
    expect(JSON.stringify(talk.posted).length).toBeLessThan(1_500)
  })

  it('K11: a prompt that is refused after its turn is over fails the attempt all the same: the next one would be too', async () => {
    const talk = new Talk()
    const give = later(talk.protocol)
    void talk.begin()
    give.get('start')?.(OK)
    void talk.session.dispatch(1)
    await turns(1)
    talk.prompts.clear()
    give.get('prompt hello')?.(failed('closed'))
    await talk.clock.advance(MINUTE)
    expect(talk.types).toEqual(['session.failed'])
  })
})

describe('a protocol that throws where it must not', () => {
  const broken = (): never => {
    throw new Error('oh no')
  }

  it('F: in the reading of output: the attempt fails, once, and the reader of the output is unhurt', async () => {
    const talk = new Talk()
    await talk.begin()
    talk.protocol.onPush = broken
    for (let chunk = 0; chunk < 100; chunk += 1) talk.session.push('stdout', Buffer.from('x'))
    expect(talk.clock.armed).toBe(2)
    await talk.clock.advance(2_000)
    expect(talk.posted).toMatchObject([
      { type: 'session.failed', attempt: 1, message: expect.stringContaining('oh no') as string },
    ])
  })

  it('F: at the end of the output, in a cancel, a steer, or a look at its tools', async () => {
    const talk = new Talk()
    await talk.begin()
    await talk.session.dispatch(1)
    Object.assign(talk.protocol, { end: broken, cancelTurn: broken, steer: broken })
    Object.defineProperty(talk.protocol, 'openTools', { get: broken })
    Object.defineProperty(talk.protocol, 'unknownFrames', { get: broken })
    expect(talk.session.openTools).toEqual([])
    expect([...talk.session.unknownFrames]).toEqual([])
    expect(talk.session.steer('x')).toBe(false)
    talk.session.abort(1)
    talk.session.askToEnd()
    talk.session.end()
    await talk.clock.advance(MINUTE)
    // The output has ended: the exit says what became of it.
    expect(talk.posted).toEqual([])
  })
})

describe('ending a turn', () => {
  it('K13: a turn that the agent has not been given yet is cancelled without it, and never given', async () => {
    const talk = new Talk()
    const give = later(talk.protocol)
    void talk.begin()
    void talk.session.dispatch(1)
    talk.session.abort(1)
    expect(talk.posted).toEqual([{ type: 'turn.cancelled', attempt: 1, generation: 1 }])
    give.get('start')?.(OK)
    await turns(1)
    expect(talk.protocol.asked).toEqual(['start'])
  })

  it('K13: one that it has is asked of the agent, and what it answers is passed on', async () => {
    const talk = new Talk()
    await talk.begin()
    await talk.session.dispatch(1)
    talk.session.abort(1)
    expect(talk.protocol.asked.at(-1)).toBe('cancelTurn')
    expect(talk.posted).toEqual([])
    talk.protocol.sink.cancelAcknowledged()
    talk.protocol.sink.cancelled()
    expect(talk.posted).toEqual([
      { type: 'turn.cancel-acknowledged', attempt: 1, generation: 1 },
      { type: 'turn.cancelled', attempt: 1, generation: 1 },
    ])
  })

  it('K13: an older turn is not what is cancelled', async () => {
    const talk = new Talk()
    talk.prompts.set(2, 'next')
    await talk.begin()
    await talk.session.dispatch(1)
    await talk.session.dispatch(2)
    talk.session.abort(1)
    expect(talk.protocol.asked).not.toContain('cancelTurn')
  })

  it('O6: an agent that is asked to end is not given what it does not have yet', async () => {
    const talk = new Talk()
    const give = later(talk.protocol)
    void talk.begin()
    void talk.session.dispatch(1)
    talk.session.askToEnd()
    expect(talk.protocol.asked).toEqual(['start'])
    give.get('start')?.(OK)
    await turns(1)
    expect(talk.protocol.asked).toEqual(['start'])
    talk.session.askToEnd()
    expect(talk.protocol.asked).toEqual(['start', 'cancelTurn'])
  })

  it('K1: steering starts the silence anew, and is neither progress nor an epoch', async () => {
    const talk = new Talk()
    await talk.begin()
    await talk.session.dispatch(1)
    await talk.clock.advance(4 * MINUTE)
    expect(talk.session.steer('more')).toBe(true)
    expect(talk.protocol.asked.at(-1)).toBe('steer more')
    expect([talk.progress.quietMs, talk.epoch]).toEqual([0, 0])
    await talk.clock.advance(MINUTE)
    Object.assign(talk.protocol, { steer: () => false })
    expect(talk.session.steer('more')).toBe(false)
    expect(talk.progress.quietMs).toBe(MINUTE)
  })
})

describe('whose facts they are', () => {
  it('K11, INV-10: a fact carries the turn that the agent was last given', async () => {
    const talk = new Talk()
    await talk.begin()
    await talk.session.dispatch(1)
    talk.protocol.sink.completed({ isOk: true })
    talk.prompts.set(2, 'next')
    await talk.session.dispatch(2)
    talk.protocol.sink.completed({ isOk: false, text: 'no' })
    talk.protocol.sink.personAsked()
    talk.protocol.sink.personAnswered()
    expect(talk.posted).toEqual([
      { type: 'turn.completed', attempt: 1, generation: 1, result: { isOk: true } },
      { type: 'turn.completed', attempt: 1, generation: 2, result: { isOk: false, text: 'no' } },
      { type: 'person.asked', attempt: 1, generation: 2 },
      { type: 'person.answered', attempt: 1, generation: 2 },
    ])
  })

  it('K11: what the agent still says of the turn before is no progress of the one that it does not have yet', async () => {
    const talk = new Talk()
    await talk.begin()
    await talk.session.dispatch(1)
    talk.protocol.sink.progress()
    expect(talk.epoch).toBe(1)
    // The next turn has begun, and its prompt is on its way.
    talk.progress.begin(1, 2)
    talk.protocol.sink.progress()
    talk.protocol.sink.completionSignalled()
    expect(talk.epoch).toBe(0)
    talk.prompts.set(2, 'next')
    await talk.session.dispatch(2)
    talk.protocol.sink.progress()
    expect(talk.epoch).toBe(1)
    await talk.clock.advance(20 * MINUTE)
    expect(talk.silences).toEqual(['silent'])
  })

  it('K19: what an ended attempt still says moves nothing of its successor', async () => {
    const talk = new Talk()
    await talk.begin()
    await talk.session.dispatch(1)
    const { sink } = talk.protocol
    const second = talk.open(2, 2)
    talk.prompts.clear()
    talk.prompts.set(2, 'hello')
    talk.progress.begin(2, 2)
    await talk.begin(second)
    await second.dispatch(2)
    talk.protocol.sink.completionSignalled()
    sink.progress()
    sink.personAsked()
    sink.retrying({ attempt: 1, attemptsMax: 2, delayMs: 3, reason: 'busy' })
    expect(talk.progress.stamp).toEqual({ attempt: 2, generation: 2, epoch: 0 })
    sink.completed({ isOk: true })
    expect(talk.posted).toEqual([
      { type: 'person.asked', attempt: 1, generation: 1 },
      { type: 'turn.completed', attempt: 1, generation: 1, result: { isOk: true } },
    ])
    // Nor does it take back what the successor said.
    await talk.clock.advance(11 * MINUTE)
    expect(talk.silences).toContain('completion-silent')
  })

  it('K2: a question to a person is progress of its turn', async () => {
    const talk = new Talk()
    await talk.begin()
    await talk.session.dispatch(1)
    talk.protocol.sink.personAsked()
    expect(talk.epoch).toBe(1)
    expect(talk.types).toEqual(['person.asked'])
  })

  it('K10: a retry takes the completion signal back, and people hear of it', async () => {
    const talk = new Talk()
    await talk.begin()
    await talk.session.dispatch(1)
    talk.protocol.sink.progress()
    talk.protocol.sink.completionSignalled()
    talk.protocol.sink.retrying({ attempt: 1, attemptsMax: 3, delayMs: 100, reason: 'busy' })
    await talk.clock.advance(20 * MINUTE)
    expect(talk.silences).toEqual(['silent'])
    expect(talk.news).toEqual([
      { type: 'retrying', attempt: 1, attemptsMax: 3, delayMs: 100, reason: 'busy' },
    ])
  })

  it('K2: a type of frame that nobody knows is told, and is no progress', async () => {
    const talk = new Talk()
    await talk.begin()
    talk.protocol.sink.unknownFrame('nova')
    expect(talk.news).toEqual([{ type: 'unknown-frame', frameType: 'nova' }])
    expect(talk.epoch).toBe(0)
  })
})

describe('a frozen agent', () => {
  it('O7: what a protocol waits for stands still', async () => {
    const talk = new Talk()
    await talk.begin()
    let hasFired = false
    talk.protocol.io?.clock.after(1_000, () => {
      hasFired = true
    })
    talk.session.setFrozen(true)
    await talk.clock.advance(MINUTE)
    expect(hasFired).toBe(false)
    talk.session.setFrozen(false)
    await talk.clock.advance(1_000)
    expect(hasFired).toBe(true)
  })
})
