/** Agents of the fixtures as commands, and what a run told of them, written down. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll } from 'vitest'
import { createEngine } from '../../src/index.js'
import type { Engine, EventOptions, Run, RunEventOut } from '../../src/index.js'
import { TIER } from './engine.js'
import { waitFor } from './wait-for.js'

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/${name}/agent.mjs`, import.meta.url))

/** An ACP agent, the official library on its side; what it does is what it is told in the prompt. */
export const acpAgent = (begins = 'ready'): [string, ...string[]] => [
  process.execPath,
  fixture('acp-agent'),
  begins,
]

/** What a scripted agent does, one thing after the other. */
export type Step =
  | { readonly say: object | string }
  | { readonly write: string }
  | { readonly repeat: { readonly frame: object | string; readonly everyMs: number } }
  | { readonly waitMs: number }
  | { readonly until: string }
  | { readonly hear: number }
  | { readonly hearEnd: true }
  | { readonly child: readonly string[] }
  | { readonly exit: number }
  | { readonly stay: true }

export const scriptedAgent = (...steps: readonly Step[]): [string, ...string[]] => [
  process.execPath,
  fixture('scripted-agent'),
  JSON.stringify(steps),
]

/** Writes progress as fast as it is read; how many frames are out stands in the file. */
export const floodingAgent = (countFile: string): [string, ...string[]] => [
  process.execPath,
  fixture('flooding-agent'),
  countFile,
]

export interface Recording {
  readonly name: string
  /** How many times faster than recorded. */
  readonly speed: number
  readonly talks: 'never' | 'lines' | 'rpc'
  readonly promptAfter?: number | undefined
}

export const recordedAgent = (recording: Recording): [string, ...string[]] => [
  process.execPath,
  fixture('recorded-agent'),
  JSON.stringify(recording),
]

type EventOf<T extends RunEventOut['type']> = Extract<RunEventOut, { type: T }>

export interface Told {
  readonly all: readonly RunEventOut[]
  of<T extends RunEventOut['type']>(type: T): EventOf<T>[]
  /** Waits until so many events of a type have come; the last of them. */
  until<T extends RunEventOut['type']>(type: T, count?: number): Promise<EventOf<T>>
  /** The stream of events has ended by itself. */
  readonly ended: Promise<void>
}

/** Writes down what a run tells from here on. */
export function listenTo(run: Run, options: EventOptions = { output: 'none' }): Told {
  const all: RunEventOut[] = []
  const of = <T extends RunEventOut['type']>(type: T) =>
    all.filter((event): event is EventOf<T> => event.type === type)
  const listen = async (): Promise<void> => {
    for await (const event of run.events(options)) all.push(event)
  }
  return {
    all,
    of,
    until: (type, count = 1) =>
      waitFor(() => of(type)[count - 1], {
        deadlineMs: 20_000,
        what: `${String(count)} of ${type}, among ${all.map((event) => event.type).join(', ')}`,
      }),
    ended: listen(),
  }
}

/** Waits until a run's work, or its process, stands there. */
export async function untilStands(run: Run, place: string): Promise<void> {
  await waitFor(() => run.state.work === place || run.state.process === place, {
    deadlineMs: 20_000,
    what: `run ${run.id} stands at ${place}`,
  })
}

export interface SharedEngine {
  readonly engine: Engine
  /** Goes away with the last test. */
  readonly folder: string
}

/** One engine over a file for all tests of a file, which go on at the same time. */
export function sharedEngine(): SharedEngine {
  const folder = mkdtempSync(join(tmpdir(), 'runwarden-test-'))
  let engine: Engine | undefined
  beforeAll(async () => {
    engine = await createEngine({ database: join(folder, 'runs.db'), containment: { prefer: TIER } })
  })
  afterAll(async () => {
    await engine?.close({ runs: 'cancel', deadlineMs: 20_000 })
    rmSync(folder, { recursive: true, force: true })
  }, 60_000)
  return {
    folder,
    get engine() {
      if (engine === undefined) throw new Error('the engine is opened before the first test')
      return engine
    },
  }
}
