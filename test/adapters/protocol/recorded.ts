/** What each recorded file must come to, read off the recordings by hand. */
import { readFileSync } from 'node:fs'
import type { Protocol } from '../../../src/protocols.js'
import {
  acp,
  claudeStreamJson,
  codexAppServer,
  codexJson,
  geminiJson,
  opencodeJson,
  piJson,
  qwenJson,
} from '../../../src/protocols.js'

const folder = new URL('../../fixtures/frames/', import.meta.url)

export interface Expected {
  /** Lines that are progress, each pushed by itself. */
  readonly progress: number
  /** How the turn ended; absent where it did not. */
  readonly ends?: 'ok' | 'error'
  readonly retries?: number
  readonly signals?: number
  readonly asked?: number
  /** Titles of the tools that are open at the end. */
  readonly open?: readonly string[]
}

export interface Family {
  readonly protocol: () => Protocol
  /** The files' names, up to the scenario. */
  readonly prefix: string
  /** Driven families: how many lines come before the first prompt is given. */
  readonly promptAfterLines?: number
  readonly files: Readonly<Record<string, Expected>>
}

const nothing = { progress: 0 } as const

export const families: readonly Family[] = [
  {
    protocol: claudeStreamJson,
    prefix: 'claude-2.1.332-json-',
    files: {
      answer: { progress: 2, ends: 'ok' },
      tool: { progress: 7, ends: 'ok' },
      'tool-background': { progress: 5, ends: 'ok' },
      // The first heartbeat of a tool says that it runs; there is no second one in the recording.
      'tool-long': { progress: 4, open: ['Bash'] },
      flood: { progress: 1, ends: 'ok' },
      'hang-before': nothing,
      // Without partial messages the one token never shows.
      'hang-after': nothing,
      error429: { progress: 0, retries: 8 },
    },
  },
  {
    protocol: claudeStreamJson,
    prefix: 'claude-2.1.332-json-partial-',
    files: {
      answer: { progress: 8, ends: 'ok' },
      tool: { progress: 15, ends: 'ok' },
      flood: { progress: 20, ends: 'ok' },
      'hang-after': { progress: 1 },
      'hang-after-long': { progress: 2, ends: 'ok' },
    },
  },
  {
    protocol: () => claudeStreamJson({ input: 'stream-json' }),
    prefix: 'claude-2.1.332-json-io-',
    promptAfterLines: 0,
    files: {
      answer: { progress: 8, ends: 'ok' },
      tool: { progress: 15, ends: 'ok' },
      'tool-background': { progress: 13, ends: 'ok' },
      'tool-long': { progress: 6, open: ['Bash'] },
      flood: { progress: 20, ends: 'ok' },
      'hang-before': nothing,
      'hang-after': { progress: 1 },
      error429: { progress: 0, retries: 8 },
    },
  },
  {
    protocol: codexJson,
    prefix: 'codex-0.171.0-json-',
    files: {
      answer: { progress: 2, ends: 'ok' },
      tool: { progress: 5, ends: 'ok' },
      'sandbox-tool': { progress: 5, ends: 'ok' },
      'tool-background': { progress: 5, ends: 'ok' },
      // The turn ends while the command still runs: it is nobody's open tool any more.
      'tool-long': { progress: 4, ends: 'ok' },
      flood: { progress: 1, ends: 'ok' },
      'hang-before': nothing,
      'hang-after': nothing,
      'hang-after-long': { progress: 0, retries: 1 },
      error429: { progress: 0, ends: 'error' },
    },
  },
  {
    protocol: codexAppServer,
    prefix: 'codex-0.171.0-app-server-',
    files: {
      answer: { progress: 10, ends: 'ok' },
      tool: { progress: 16, ends: 'ok' },
      'tool-background': { progress: 15, ends: 'ok' },
      'tool-long': { progress: 14, ends: 'ok' },
      flood: { progress: 21, ends: 'ok' },
      'hang-before': nothing,
      'hang-after': { progress: 2 },
      error429: { progress: 0, ends: 'error' },
    },
  },
  {
    protocol: piJson,
    prefix: 'pi-1.6.0-json-',
    files: {
      answer: { progress: 11, ends: 'ok', signals: 1 },
      tool: { progress: 26, ends: 'ok', signals: 1 },
      'tool-background': { progress: 25, ends: 'ok', signals: 1 },
      'tool-long': { progress: 11, open: ['bash'] },
      flood: { progress: 18, ends: 'ok', signals: 1 },
      'hang-before': nothing,
      'hang-before-long': { progress: 0, retries: 1 },
      'hang-after': { progress: 3 },
      error429: { progress: 0, ends: 'error', retries: 3, signals: 1 },
    },
  },
  {
    protocol: () => piJson({ mode: 'rpc' }),
    prefix: 'pi-1.6.0-rpc-',
    promptAfterLines: 0,
    files: {
      answer: { progress: 11, ends: 'ok', signals: 1 },
      tool: { progress: 26, ends: 'ok', signals: 1 },
      'tool-background': { progress: 25, ends: 'ok', signals: 1 },
      'tool-long': { progress: 11, open: ['bash'] },
      flood: { progress: 18, ends: 'ok', signals: 1 },
      'hang-before': nothing,
      'hang-after': { progress: 3 },
      error429: { progress: 0, ends: 'error', retries: 3, signals: 1 },
    },
  },
  {
    // It does not say that it has settled: its end is the process's, or a signal that nothing followed.
    protocol: piJson,
    prefix: 'pi-old-0.73.1-json-',
    files: {
      answer: { progress: 11, signals: 1 },
      tool: { progress: 26, signals: 1 },
      'hang-before': nothing,
      error429: { progress: 0, retries: 3, signals: 4 },
    },
  },
  {
    protocol: opencodeJson,
    prefix: 'opencode-1.18.33-json-',
    files: {
      answer: { progress: 3, signals: 1 },
      tool: { progress: 7, signals: 1 },
      'tool-background': { progress: 7, signals: 1 },
      'tool-long': { progress: 2 },
      flood: { progress: 1 },
      'hang-before': nothing,
      'hang-after': { progress: 1 },
      error429: nothing,
    },
  },
  {
    protocol: geminiJson,
    prefix: 'gemini-0.61.0-json-',
    files: {
      answer: { progress: 4, ends: 'ok' },
      tool: { progress: 7, ends: 'ok' },
      'tool-background': { progress: 7, ends: 'ok' },
      'tool-long': { progress: 2, open: ['run_shell_command'] },
      flood: { progress: 23, ends: 'ok' },
      'hang-before': nothing,
      'hang-after': { progress: 1 },
      error429: nothing,
    },
  },
  {
    protocol: qwenJson,
    prefix: 'qwen-0.24.4-json-',
    files: {
      answer: { progress: 2, ends: 'ok' },
      tool: { progress: 5, ends: 'ok' },
      'tool-background': { progress: 5, ends: 'ok' },
      'tool-long': { progress: 2, open: ['run_shell_command'] },
      flood: nothing,
      'hang-before': nothing,
      'hang-after': nothing,
      error429: nothing,
    },
  },
  {
    protocol: qwenJson,
    prefix: 'qwen-0.24.4-json-partial-',
    files: {
      answer: { progress: 7, ends: 'ok' },
      tool: { progress: 12, ends: 'ok' },
      flood: { progress: 21 },
      'hang-after': { progress: 1 },
    },
  },
  {
    protocol: acp,
    prefix: 'claude-acp-0.101.0-acp-',
    promptAfterLines: 6,
    files: {
      answer: { progress: 5, ends: 'ok' },
      tool: { progress: 10, ends: 'ok' },
      'tool-background': { progress: 11, ends: 'ok', asked: 1 },
      'tool-long': { progress: 5, asked: 1, open: ['Bash'] },
      flood: { progress: 14, ends: 'ok' },
      'hang-before': nothing,
      'hang-after': { progress: 1 },
      error429: nothing,
    },
  },
  {
    // The fifth line is the unasked warning: here the prompt comes after it, as the session's short wait has it.
    protocol: acp,
    prefix: 'codex-acp-2.6.0-acp-',
    promptAfterLines: 5,
    files: {
      answer: { progress: 6, ends: 'ok' },
      tool: { progress: 11, ends: 'ok', asked: 1 },
      'tool-background': { progress: 10, ends: 'ok', asked: 1 },
      'tool-long': { progress: 9, ends: 'ok', asked: 1 },
      flood: { progress: 16, ends: 'ok' },
      'hang-before': nothing,
      'hang-after': { progress: 1 },
      // It gives up with a message to the user and ends the turn well: by its types it is an answer.
      error429: { progress: 1, ends: 'ok' },
    },
  },
  {
    protocol: acp,
    prefix: 'gemini-0.61.0-acp-',
    promptAfterLines: 2,
    files: {
      answer: { progress: 5, ends: 'ok' },
      tool: { progress: 8, ends: 'ok', asked: 1 },
      'tool-background': { progress: 8, ends: 'ok', asked: 1 },
      // It announces no call, but asks about one.
      'tool-long': { progress: 2, asked: 1, open: ['execute'] },
      flood: { progress: 21, ends: 'ok' },
      'hang-before': nothing,
      'hang-after': { progress: 1 },
      error429: nothing,
    },
  },
  {
    protocol: acp,
    prefix: 'opencode-1.18.33-acp-',
    promptAfterLines: 2,
    files: {
      answer: { progress: 5, ends: 'ok' },
      tool: { progress: 13, ends: 'ok', asked: 1 },
      'tool-background': { progress: 12, ends: 'ok', asked: 1 },
      'tool-long': { progress: 6, asked: 1, open: ['execute'] },
      flood: { progress: 21, ends: 'ok' },
      'hang-before': nothing,
      'hang-after': { progress: 1 },
      error429: { progress: 0, ends: 'error' },
    },
  },
  {
    protocol: acp,
    prefix: 'qwen-0.24.4-acp-',
    promptAfterLines: 2,
    files: {
      answer: { progress: 6, ends: 'ok' },
      tool: { progress: 11, ends: 'ok', asked: 1 },
      'tool-background': { progress: 11, ends: 'ok', asked: 1 },
      // Of two looks at the running shell the second one shows a later time and nothing else.
      'tool-long': { progress: 5, asked: 1, open: ['run_shell_command'] },
      flood: { progress: 21, ends: 'ok' },
      'hang-before': nothing,
      'hang-after': { progress: 1 },
      error429: nothing,
    },
  },
]

/** The lines of a recording. */
export const recordedLines = (name: string): readonly string[] =>
  readFileSync(new URL(`${name}.ndjson`, folder), 'utf8')
    .split('\n')
    .filter((line) => line !== '')

export const recordingsFolder = folder
