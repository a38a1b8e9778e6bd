/**
 * The guardian, as its engine sees it: a small process of its own that ends the engine's runs when the engine dies (R7).
 *
 * Owns: the child, the pipe whose other end only this process holds, and the repeats when the child goes by itself.
 * Does not own: what the child does (guardian-main.ts, guardian.ts).
 * The child leads its own session, so that no signal to this process's group or terminal reaches it, and holds nothing of our stdio.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import type { GuardianPort } from '../../actors/guardian.ports.js'
import type { Logger } from '../../actors/ports.js'
import { messageOf } from '../../errors.js'

const RESTARTS_MAX = 5
const RESTART_WAIT_MS = 1_000

/** What of the host's environment would make another program of ours: a debugger's port, a coverage folder, a loader. */
const NOT_OURS = ['NODE_OPTIONS', 'NODE_V8_COVERAGE', 'NODE_CHANNEL_FD', 'NODE_UNIQUE_ID']

export interface GuardianOptions {
  readonly engineId: string
  /** The path of the guardian's program. */
  readonly program: string
  /** The first line that it is told. May hold a password: it goes through the pipe, never as an argument or in the environment (L7). */
  readonly task: unknown
  readonly logger: Logger
}

/** The last word of an engine that closes. */
const DISMISSED = 'dismissed\n'
const LEFT = 'left\n'

class GuardianChild implements GuardianPort {
  readonly #options: GuardianOptions
  #child: ChildProcess | null = null
  #restarts = 0
  #isOver = false
  #cancelRestart: () => void = () => undefined

  constructor(options: GuardianOptions) {
    this.#options = options
  }

  arm(): void {
    if (this.#child !== null || this.#isOver || this.#restarts > 0) return
    this.#spawn()
  }

  dismiss({ hasLeft }: { readonly hasLeft: boolean }): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#cancelRestart()
    this.#child?.stdin?.end(hasLeft ? LEFT : DISMISSED)
  }

  #spawn(): void {
    const { engineId, program, task, logger } = this.#options
    const env = Object.entries(process.env).filter(([name]) => !NOT_OURS.includes(name))
    let child: ChildProcess
    try {
      child = spawn(process.execPath, [program], {
        detached: true,
        stdio: ['pipe', 'ignore', 'ignore'],
        // An Electron host is no Node by itself.
        env: { ...Object.fromEntries(env), ELECTRON_RUN_AS_NODE: '1', RUNWARDEN_GUARDIAN_OF: engineId },
        windowsHide: true,
      })
    } catch (error) {
      this.#lost(messageOf(error))
      return
    }
    this.#child = child
    let isLost = false
    const lost = (why: string): void => {
      if (isLost) return
      isLost = true
      this.#lost(why)
    }
    child.once('error', (error) => {
      lost(messageOf(error))
    })
    child.once('exit', (code, signal) => {
      lost(`it ended with ${signal ?? `exit code ${String(code)}`}`)
    })
    // A guardian that is gone is told of by its exit.
    child.stdin?.on('error', () => undefined)
    // In the kernel's buffer when this returns: an engine that dies in the next instruction has a guardian that knows its task.
    child.stdin?.write(`${JSON.stringify(task)}\n`)
    child.unref()
    ;(child.stdin as Partial<Socket> | null)?.unref?.()
    logger.debug({ pid: child.pid }, 'the guardian is there')
  }

  /** INV-11: an engine whose guardian will not stay goes on without one, and says so. */
  #lost(why: string): void {
    this.#child = null
    if (this.#isOver) return
    const { logger } = this.#options
    this.#restarts += 1
    if (this.#restarts > RESTARTS_MAX) {
      logger.error({ why }, 'the guardian does not stay: the runs of this engine outlive it if it dies')
      return
    }
    logger.warn({ why }, 'the guardian is gone; another one is started')
    const timer = setTimeout(() => {
      if (!this.#isOver) this.#spawn()
    }, RESTART_WAIT_MS)
    timer.unref()
    this.#cancelRestart = () => {
      clearTimeout(timer)
    }
  }
}

export const createGuardian = (options: GuardianOptions): GuardianPort => new GuardianChild(options)
