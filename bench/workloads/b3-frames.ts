/** B3: what an agent says, through the protocol and the progress clock, against the same bytes merely read. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { OURS } from '../contract.js'
import type { Params, Sample, Workload } from '../contract.js'
import { nowMs } from '../machine.js'
import { ProgressClock, RunSession, systemClock } from '../../src/internal.js'
import { acp, claudeStreamJson } from '../../src/protocols.js'
import type { Protocol } from '../../src/protocols.js'

const ACP =
  '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","text":"'
const CLAUDE =
  '{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"'
const SHAPES = [
  { head: CLAUDE, tail: '"}}}', protocol: claudeStreamJson },
  { head: ACP, tail: '"}}}', protocol: acp },
] as const

const shapeOf = ({ shape = 0 }: Params): (typeof SHAPES)[number] => SHAPES[shape === 1 ? 1 : 0]

const lineOf = (params: Params): string => {
  const { head, tail } = shapeOf(params)
  return head + 'x'.repeat(Math.max(0, (params['lineBytes'] ?? 0) - 1 - head.length - tail.length)) + tail
}

/** `lines` equal lines from a process of its own, as fast as they are read; resolves with the time it took, in ms. */
const stream = async (params: Params, take: (chunk: Buffer) => void): Promise<number> => {
  const line = lineOf(params)
  const bytes = (line.length + 1) * (params['lines'] ?? 0)
  const script = 'yes "$1" | head -c "$2"'
  const child = spawn('/bin/sh', ['-c', script, 'sh', line, String(bytes)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const startedMs = nowMs()
  child.stdout.on('data', take)
  await once(child, 'close')
  return nowMs() - startedMs
}

const emptyHandler = async (params: Params): Promise<Sample> => {
  let bytes = 0
  const value = await stream(params, (chunk) => {
    bytes += chunk.length
  })
  return { value, result: { lines: bytes / (lineOf(params).length + 1) } }
}

const counting = async (params: Params): Promise<Sample> => {
  let lines = 0
  const value = await stream(params, (chunk) => {
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1
  })
  return { value, result: { lines } }
}

/** The session as a run has it, whose chart takes part at edges only. */
const sessionOf = (protocol: Protocol, onEdge: () => void): [RunSession, ProgressClock] => {
  const limits = {
    neverStartedMs: 300_000,
    advisoryMs: 300_000,
    stalledMs: null,
    stalledToolMs: null,
    completionSignalMs: null,
    sleepGapMs: 30_000,
  }
  const progress = new ProgressClock(systemClock, limits, {
    progressed: onEdge,
    passed: () => Promise.resolve(true),
    hasOpenTool: () => false,
    cpuUsedMs: () => Promise.resolve(null),
  })
  const session = new RunSession({
    attempt: 1,
    generation: 1,
    protocol,
    maxLineBytes: 1024 * 1024,
    clock: systemClock,
    progress,
    post: onEdge,
    tell: () => undefined,
    wantsLines: () => false,
    onLine: () => undefined,
    promptOf: () => null,
  })
  progress.begin(1, 1)
  return [session, progress]
}

const ours = async (params: Params): Promise<Sample> => {
  let edges = 0
  const [session, progress] = sessionOf(shapeOf(params).protocol(), () => {
    edges += 1
  })
  let bytes = 0
  const value = await stream(params, (chunk) => {
    bytes += chunk.length
    session.push('stdout', chunk)
  })
  progress.rest()
  session.end()
  const lines = bytes / (lineOf(params).length + 1)
  return { value, more: { framesPerSecond: lines / (value / 1_000), edges }, result: { lines } }
}

const contenders = (floor: Workload['contenders'][number]): Workload['contenders'] => [
  floor,
  { name: OURS, run: ours },
]

export const shortFrames: Workload = {
  id: 'B3s',
  title: 'short frames (120 bytes) through the progress clock',
  unit: 'ms',
  floor: 'indexOf',
  reach: '≤ 1.5 × counting with indexOf',
  isReached: (of) => of(OURS).ratio <= 1.5,
  sizes: [
    { lines: 2_000_000, lineBytes: 120, shape: 0 },
    { lines: 2_000_000, lineBytes: 120, shape: 1 },
  ],
  tiny: { lines: 2_000, lineBytes: 120, shape: 0 },
  contenders: contenders({ name: 'indexOf', run: counting }),
}

export const largeFrames: Workload = {
  id: 'B3l',
  title: 'large frames (64 KiB) through the progress clock',
  unit: 'ms',
  floor: 'empty handler',
  reach: '≤ 1.15 × an empty data handler',
  isReached: (of) => of(OURS).ratio <= 1.15,
  sizes: [{ lines: 7_630, lineBytes: 65_536, shape: 0 }],
  tiny: { lines: 20, lineBytes: 65_536, shape: 0 },
  contenders: contenders({ name: 'empty handler', run: emptyHandler }),
}
