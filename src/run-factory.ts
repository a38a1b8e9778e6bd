/**
 * Makes run actors: from a host's spec, and from a record of the store.
 *
 * Owns: the defaults of a run's policy, and what is kept in memory only (commands, environments, input: L7).
 */
import { Readable } from 'node:stream'
import type { HostServices } from './actors/actor-role.js'
import type { LogPort, ProcessPort, StdinSource } from './actors/ports.js'
import { limitOutput } from './actors/output-limit.js'
import { RunActor } from './actors/run.actor.js'
import type { WatchdogLimits } from './actors/watchdog-limits.js'
import type { RunEnvironment } from './actors/run-effects.js'
import type { StoredRun } from './actors/store.ports.js'
import { lines } from './adapters/protocol/lines.js'
import { protocolNamed } from './adapters/protocol/by-name.js'
import { RunwardenError } from './errors.js'
import type { OnRecover, RunContext, RunPolicy } from './machines/run/run.context.js'
import { absolute } from './option-types.js'
import { watchdogDefaults } from './run-spec.js'
import type { ParsedRunSpec } from './run-spec.js'

/** O3: fixed, unless the run's driver declares its own. */
const TERM_GRACE_MS = 5_000

const DEFAULTS = {
  exitGraceMs: 10_000,
  finalizeDeadlineMs: 30_000,
}

/** R10: what cannot outlive its engine is refused by name, at the door. */
const assertSurvives = (spec: ParsedRunSpec, onRecover: OnRecover, hasLog: boolean): void => {
  if (onRecover === 'interrupt') return
  const refuse = (why: string): never => {
    throw new RunwardenError('invalid-option', `start: option onRecover "${onRecover}" cannot be had: ${why}`)
  }
  const { protocol, stdin, fallback } = spec
  if (!hasLog) refuse('this engine keeps no logs, and the output is to outlive it there')
  if (protocol.isInteractive)
    refuse(`protocol "${protocol.name}" takes prompts, and that conversation ends with this engine`)
  const inputs = [stdin, ...(fallback?.candidates.map((one) => one.stdin) ?? [])]
  if (inputs.some((input) => input === 'pipe' || input instanceof Readable))
    refuse('option stdin is a pipe, which breaks with this engine; give it as text')
}

const policyOf = (spec: ParsedRunSpec, onRecover: OnRecover): RunPolicy => ({
  ...DEFAULTS,
  isInteractive: spec.protocol.isInteractive && !spec.oneShot,
  isDriven: spec.protocol.isInteractive,
  hasPrompt: spec.prompt !== undefined,
  turnCancelMs: spec.turnCancelMs,
  candidates: 1 + (spec.fallback?.candidates.length ?? 0),
  canAsk: spec.stop.askGraceMs !== undefined,
  hasFinalize: false,
  hasDeliver: false,
  askGraceMs: spec.stop.askGraceMs ?? 0,
  termGraceMs: spec.stop.termGraceMs ?? TERM_GRACE_MS,
  termGraceReason: spec.stop.termGraceReason ?? null,
  killGraceMs: spec.stop.killGraceMs,
  pauseGraceMs: spec.stop.pauseGraceMs,
  isForeground: spec.foreground,
  timeoutMs: spec.limits.timeoutMs ?? null,
  maxOutputBytes: spec.limits.maxOutputBytes ?? null,
  onRecover,
})

const toStdin = (stdin: ParsedRunSpec['stdin'] | undefined): StdinSource => {
  if (stdin === undefined) return 'ignore'
  return typeof stdin === 'string' && stdin !== 'ignore' && stdin !== 'pipe' ? { text: stdin } : stdin
}

/** ADR 0009: silence of a command without a protocol means nothing, unless the host says what it means. */
const watchdogOf = ({ protocol, watchdog }: ParsedRunSpec): WatchdogLimits | null => {
  if (watchdog === undefined) return protocol.hasWatchdog ? watchdogDefaults : null
  return watchdog === false ? null : watchdog
}

export interface RunFactoryParts {
  readonly host: HostServices
  readonly processes: ProcessPort
  readonly logs: LogPort
  /** For runs that do not say. */
  readonly onRecover: OnRecover
  readonly requestAdmission: (run: RunActor) => void
  readonly onDisowned: (run: RunActor) => void
}

const OUTPUT_DEFAULTS = { maxLineBytes: 8 * 1024 * 1024, drainMs: 1_000 }

export class RunFactory {
  readonly #parts: RunFactoryParts

  constructor(parts: RunFactoryParts) {
    this.#parts = parts
  }

  fromSpec(runId: string, spec: ParsedRunSpec, job: string | null): RunActor {
    const { session, task, labels, output } = spec
    const { logs, onRecover: otherwise } = this.#parts
    const onRecover = spec.onRecover ?? otherwise
    assertSurvives(spec, onRecover, logs.pathOf(runId, 1) !== null)
    const here = process.cwd()
    const first = { command: spec.command, cwd: spec.cwd, env: spec.env, stdin: spec.stdin }
    const candidates = [first, ...(spec.fallback?.candidates ?? [])].map(({ command, cwd, env, stdin }) => ({
      command,
      cwd: absolute(cwd ?? spec.cwd ?? here),
      env: env ?? spec.env ?? process.env,
      // A protocol that takes prompts writes them there.
      stdin: spec.protocol.isInteractive ? 'pipe' : toStdin(stdin),
    }))
    const row = {
      id: runId,
      session: session ?? null,
      task: task ?? null,
      labels,
      // L7: the program only.
      program: spec.command[0] ?? '',
      protocol: spec.protocol.name,
      job,
      createdAt: this.#parts.host.clock.wallMs(),
    }
    const run = new RunActor(
      row,
      {
        ...this.#environment(policyOf(spec, onRecover)),
        ...output,
        candidates,
        protocol: spec.protocol,
        prompt: spec.prompt,
        watchdog: watchdogOf(spec),
      },
      this.#parts.host,
    )
    limitOutput(run)
    return run
  }

  /** A run that another engine began: its command is not known here, so that it can be ended and not launched. */
  fromRecord(stored: StoredRun): RunActor {
    const { context } = JSON.parse(stored.snapshot) as { context: RunContext }
    const environment = this.#environment(context.policy)
    const protocol = protocolNamed(stored.row.protocol) ?? environment.protocol
    return new RunActor(stored.row, { ...environment, protocol }, this.#parts.host)
  }

  #environment(policy: RunPolicy): RunEnvironment {
    const { processes, logs, requestAdmission, onDisowned } = this.#parts
    return {
      ...OUTPUT_DEFAULTS,
      policy,
      candidates: null,
      processes,
      logs,
      protocol: lines(),
      prompt: undefined,
      watchdog: null,
      // P9: a failure before any progress of the attempt.
      isFallbackEligible: (_event, { hasProgress }) => !hasProgress,
      requestAdmission,
      onDisowned,
    }
  }
}
