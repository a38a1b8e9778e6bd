/**
 * Makes run actors: from a host's spec, and from a record of the store.
 *
 * Owns: the defaults of a run's policy, and what is kept in memory only (commands, environments, input: L7).
 */
import { Readable } from 'node:stream'
import type { HostServices } from './actors/actor-role.js'
import { Deliveries } from './actors/deliveries.js'
import type { DeliveryHooks } from './actors/deliveries.js'
import type { LogPort, PaneSpec, ProcessPort, StdinSource, TerminalSpec } from './actors/ports.js'
import { limitOutput } from './actors/output-limit.js'
import { RunActor } from './actors/run.actor.js'
import type { WatchdogLimits } from './actors/watchdog-limits.js'
import type { RunEnvironment } from './actors/run-effects.js'
import type { StoredRun } from './actors/store.ports.js'
import { protocolNamed } from './adapters/protocol/by-name.js'
import { lines } from './adapters/protocol/lines.js'
import { socketOf } from './adapters/surface/tmux.js'
import { RunwardenError, messageOf } from './errors.js'
import type { OnRecover, RunContext, RunPolicy } from './machines/run/run.context.js'
import { absolute } from './option-types.js'
import { watchdogDefaults } from './run-spec.js'
import type { ParsedRunSpec } from './run-spec.js'

/** O3: fixed, unless the run's driver declares its own. */
const TERM_GRACE_MS = 5_000

const DEFAULTS = {
  exitGraceMs: 10_000,
}
const PERSISTENT_ASK_GRACE_MS = 10_000
const TERMINAL_DEFAULTS = { cols: 80, rows: 24, name: 'xterm-256color' }

/** R10: what cannot outlive its engine is refused by name, at the door. */
const assertSurvives = (spec: ParsedRunSpec, onRecover: OnRecover, hasLog: boolean): void => {
  if (onRecover === 'interrupt') return
  const refuse = (why: string): never => {
    throw new RunwardenError('invalid-option', `start: option onRecover "${onRecover}" cannot be had: ${why}`)
  }
  const { protocol, stdin, stdio, surface, fallback } = spec
  const others = fallback?.candidates ?? []
  if (!hasLog) refuse('this engine keeps no logs, and the output is to outlive it there')
  if (stdio === 'pty')
    refuse('option stdio "pty" is a terminal that this engine holds, and it is hung up with it')
  if (surface !== undefined)
    refuse(`what a command writes into its pane (option surface) goes to this engine alone`)
  if (protocol.isInteractive)
    refuse(`protocol "${protocol.name}" takes prompts, and that conversation ends with this engine`)
  if (others.some((one) => one.protocol !== undefined && one.protocol.name !== protocol.name))
    refuse('the record of a run names one protocol, and a candidate of option fallback has another')
  const inputs = [stdin, ...others.map((one) => one.stdin)]
  if (inputs.some((input) => input === 'pipe' || input instanceof Readable))
    refuse('option stdin is a pipe, which breaks with this engine; give it as text')
}

const policyOf = (spec: ParsedRunSpec, onRecover: OnRecover, hooks: DeliveryHooks): RunPolicy => ({
  ...DEFAULTS,
  isInteractive: spec.protocol.isInteractive && !spec.oneShot,
  isDriven: spec.protocol.isInteractive,
  hasPrompt: spec.prompt !== undefined,
  turnCancelMs: spec.turnCancelMs,
  candidates: 1 + (spec.fallback?.candidates.length ?? 0),
  canAsk: spec.stop.askGraceMs !== undefined || spec.persistent,
  isPersistent: spec.persistent,
  hasFinalize: hooks.finalize !== undefined,
  hasDeliver: hooks.deliver !== undefined,
  finalizeDeadlineMs: hooks.finalizeDeadlineMs,
  askGraceMs: spec.stop.askGraceMs ?? (spec.persistent ? PERSISTENT_ASK_GRACE_MS : 0),
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

const toTerminal = ({ stdio, pty }: ParsedRunSpec): TerminalSpec | undefined =>
  stdio === 'pipe' ? undefined : { ...TERMINAL_DEFAULTS, ...pty }

const toPane = ({ surface }: ParsedRunSpec): PaneSpec | undefined => {
  if (surface === undefined) return undefined
  const { kind, session = 'runwarden', window, title, pane, retained = pane !== undefined } = surface
  return { kind, session, window, title, paneId: pane, isRetained: retained, socket: socketOf(surface) }
}

export interface RunFactoryParts {
  readonly host: HostServices
  readonly processes: ProcessPort
  readonly logs: LogPort
  readonly delivery: DeliveryHooks
  /** For runs that do not say. */
  readonly onRecover: OnRecover
  readonly requestAdmission: (run: RunActor) => void
  readonly onDisowned: (run: RunActor) => void
}

const OUTPUT_DEFAULTS = { maxLineBytes: 8 * 1024 * 1024, drainMs: 1_000 }

export class RunFactory {
  readonly #parts: RunFactoryParts
  readonly #deliveries: Deliveries

  constructor(parts: RunFactoryParts) {
    this.#parts = parts
    this.#deliveries = new Deliveries(parts.delivery, parts.host)
  }

  /** The host has the engine, or is about to. */
  open(): void {
    this.#deliveries.open()
  }

  fromSpec(runId: string, spec: ParsedRunSpec, job: string | null): RunActor {
    const { session, task, labels, output } = spec
    const { logs, onRecover: otherwise } = this.#parts
    const onRecover = spec.onRecover ?? otherwise
    assertSurvives(spec, onRecover, logs.pathOf(runId, 1) !== null)
    const here = process.cwd()
    const first = { command: spec.command, cwd: spec.cwd, env: spec.env, stdin: spec.stdin }
    const candidates = [first, ...(spec.fallback?.candidates ?? [])].map((candidate) => {
      const { command, cwd, env, stdin } = candidate
      return {
        command,
        protocol: ('protocol' in candidate ? candidate.protocol : undefined) ?? spec.protocol,
        cwd: absolute(cwd ?? spec.cwd ?? here),
        env: env ?? spec.env ?? process.env,
        // A protocol that takes prompts writes them there.
        stdin: spec.protocol.isInteractive ? ('pipe' as const) : toStdin(stdin),
        terminal: toTerminal(spec),
        pane: toPane(spec),
      }
    })
    const row = {
      id: runId,
      session: session ?? null,
      task: task ?? null,
      labels,
      // L7: the program only.
      program: spec.command[0] ?? '',
      protocol: spec.protocol.name,
      job,
      parent: spec.parent ?? null,
      onParentCancel: spec.onParentCancel,
      createdAt: this.#parts.host.clock.wallMs(),
    }
    const run = new RunActor(
      row,
      {
        ...this.#environment(policyOf(spec, onRecover, this.#parts.delivery)),
        ...output,
        candidates,
        protocol: spec.protocol,
        prompt: spec.prompt,
        watchdog: watchdogOf(spec),
        isFallbackEligible: this.#fallbackRule(spec),
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

  /** P9: by default a failure before any progress of the attempt. */
  #fallbackRule({ fallback }: ParsedRunSpec): RunEnvironment['isFallbackEligible'] {
    const { when } = fallback ?? {}
    if (when === undefined) return ({ hasProgress }) => !hasProgress
    const failed = (error: unknown): void => {
      // P19: the host's rule is the host's; without an answer nothing is tried.
      this.#parts.host.logger.error({ error: messageOf(error) }, 'the fallback rule failed')
    }
    return (failure) => {
      try {
        const answer: unknown = when(failure)
        // Decided in this tick: a promise is no answer.
        if (answer instanceof Promise) answer.catch(failed)
        return answer === true
      } catch (error) {
        failed(error)
        return false
      }
    }
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
      deliveries: this.#deliveries,
      isFallbackEligible: () => false,
      requestAdmission,
      onDisowned,
    }
  }
}
