/**
 * Makes run actors: from a host's spec, and from a record of the store.
 *
 * Owns: the defaults of a run's policy, and what is kept in memory only (commands, environments, input: L7).
 */
import type { HostServices } from './actors/actor-role.js'
import type { LogPort, PaneSpec, ProcessPort, StdinSource, TerminalSpec } from './actors/ports.js'
import { RunActor } from './actors/run.actor.js'
import type { RunEnvironment } from './actors/run-effects.js'
import type { StoredRun } from './actors/store.ports.js'
import { lines } from './adapters/protocol/lines.js'
import { socketOf } from './adapters/surface/tmux.js'
import type { RunContext, RunPolicy } from './machines/run/run.context.js'
import { absolute } from './options.js'
import type { ParsedRunSpec } from './options.js'

const DEFAULTS = {
  pauseGraceMs: 900_000,
  exitGraceMs: 10_000,
  turnCancelMs: 10_000,
  finalizeDeadlineMs: 30_000,
}
const TERMINAL_DEFAULTS = { cols: 80, rows: 24, name: 'xterm-256color' }

const policyOf = (spec: ParsedRunSpec): RunPolicy => ({
  ...DEFAULTS,
  isInteractive: false,
  candidates: 1 + (spec.fallback?.candidates.length ?? 0),
  canAsk: spec.stop.askGraceMs !== undefined,
  hasFinalize: false,
  hasDeliver: false,
  askGraceMs: spec.stop.askGraceMs ?? 0,
  termGraceMs: spec.stop.termGraceMs,
  killGraceMs: spec.stop.killGraceMs,
})

const toStdin = (stdin: ParsedRunSpec['stdin'] | undefined): StdinSource => {
  if (stdin === undefined) return 'ignore'
  return typeof stdin === 'string' && stdin !== 'ignore' && stdin !== 'pipe' ? { text: stdin } : stdin
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
  readonly requestAdmission: (run: RunActor) => void
  readonly onDisowned: (run: RunActor) => void
}

const OUTPUT_DEFAULTS = { maxLineBytes: 8 * 1024 * 1024, drainMs: 1_000 }

export class RunFactory {
  readonly #parts: RunFactoryParts

  constructor(parts: RunFactoryParts) {
    this.#parts = parts
  }

  fromSpec(runId: string, spec: ParsedRunSpec): RunActor {
    const { session, task, labels, output } = spec
    const here = process.cwd()
    const first = { command: spec.command, cwd: spec.cwd, env: spec.env, stdin: spec.stdin }
    const candidates = [first, ...(spec.fallback?.candidates ?? [])].map(({ command, cwd, env, stdin }) => ({
      command,
      cwd: absolute(cwd ?? spec.cwd ?? here),
      env: env ?? spec.env ?? process.env,
      stdin: toStdin(stdin),
      terminal: toTerminal(spec),
      pane: toPane(spec),
    }))
    const row = {
      id: runId,
      session: session ?? null,
      task: task ?? null,
      labels,
      // L7: the program only.
      program: spec.command[0] ?? '',
      protocol: 'lines',
      createdAt: this.#parts.host.clock.wallMs(),
    }
    return new RunActor(
      row,
      { ...this.#environment(policyOf(spec)), ...output, candidates },
      this.#parts.host,
    )
  }

  /** A run that another engine began: its command is not known here, so that it can be ended and not launched. */
  fromRecord(stored: StoredRun): RunActor {
    const { context } = JSON.parse(stored.snapshot) as { context: RunContext }
    return new RunActor(stored.row, this.#environment(context.policy), this.#parts.host)
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
      watchdog: null,
      // P9: a failure before any progress.
      isFallbackEligible: (_event, context) => !context.hasProgress,
      requestAdmission,
      onDisowned,
    }
  }
}
