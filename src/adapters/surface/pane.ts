/**
 * One pane of one tmux server: whether it is there, whether it is still ours, and its end.
 *
 * Owns: what may be said of a pane. A pane is absent when its server is proven gone, or when that same server, asked, does not name it
 *   with the process it was made for. A server that does not answer, or another one at the same socket, proves nothing (INV-5, R6).
 */
import type { PanePlace, ProcessPort } from '../../actors/ports.js'
import { RunwardenError, messageOf } from '../../errors.js'
import { ask } from './tmux.js'

/** Who says whether a process lives. */
export type Judge = Pick<ProcessPort, 'lookUp'>

export type Presence = 'present' | 'closed' | 'respawned' | 'server-gone'

const LOOK_WAIT_MS = 20

export const wait = (delayMs: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, delayMs)
  })

/** What is left of a deadline; never nothing, so that whoever asks still gets an answer of its own. */
const leftOf = (endsAt: number): number => Math.max(1, endsAt - performance.now())

export class Pane {
  readonly socket: string
  readonly place: PanePlace
  readonly #judge: Judge

  constructor(socket: string, place: PanePlace, judge: Judge) {
    this.socket = socket
    this.place = place
    this.#judge = judge
  }

  get name(): string {
    return `pane ${this.place.paneId} of the tmux server at ${this.socket}`
  }

  /** True in the server, at the moment of the act: this server, and the process that the pane was made for. */
  get #isOurs(): string {
    const { server, shell } = this.place
    return `#{&&:#{==:#{pid},${String(server.pid)}},#{==:#{pane_pid},${String(shell.pid)}}}`
  }

  /** Runs a tmux command on the pane, if it is still ours. */
  async act(
    command: string,
    withinMs: number,
    before: readonly string[] = [],
    input?: Uint8Array | string,
  ): Promise<void> {
    await ask(this.socket, [...before, ...this.#ifOurs(command)], {
      withinMs,
      ...(input === undefined ? {} : { input }),
    })
  }

  /** Rejects when it cannot be said. */
  presence(withinMs: number): Promise<Presence> {
    return this.#presenceAfter([], withinMs)
  }

  /**
   * P12: closes the pane and proves it absent, its shell with it. An error of the closing does not matter where the pane is absent;
   * where it is not, both errors are said.
   */
  async close(withinMs: number): Promise<string | null> {
    const endsAt = performance.now() + withinMs
    let found: string | null = null
    for (;;) {
      const problem = await this.#closeOnce(endsAt)
      if (problem === null) return null
      // A try that was cut short says less than the one before it.
      if (performance.now() >= endsAt) return `${this.name} is not proven closed: ${found ?? problem}`
      found = problem
      await wait(LOOK_WAIT_MS)
    }
  }

  async #closeOnce(endsAt: number): Promise<string | null> {
    const kill = [...this.#ifOurs(`kill-pane -t ${this.place.paneId}`), ';']
    let closing: string
    try {
      // One question for both: a busy server is waited for once.
      return await this.#problemOf(await this.#presenceAfter(kill, leftOf(endsAt)))
    } catch (error) {
      closing = messageOf(error)
    }
    if (performance.now() >= endsAt) return closing
    try {
      const problem = await this.#problemOf(await this.presence(leftOf(endsAt)))
      return problem === null ? null : `${closing}; ${problem}`
    } catch (error) {
      return closing === messageOf(error) ? closing : `${closing}; ${messageOf(error)}`
    }
  }

  async #problemOf(presence: Presence): Promise<string | null> {
    if (presence === 'present') return 'it is still there'
    return (await this.#judge.lookUp(this.place.shell)) === 'gone' ? null : 'its shell has outlived it'
  }

  #ifOurs(command: string): string[] {
    return ['if-shell', '-F', '-t', this.place.paneId, this.#isOurs, command]
  }

  async #presenceAfter(commands: readonly string[], withinMs: number): Promise<Presence> {
    const { server, paneId, shell } = this.place
    if ((await this.#judge.lookUp(server)) === 'gone') return 'server-gone'
    let listed: string
    try {
      const list = ['list-panes', '-a', '-F', '#{pid} #{pane_id} #{pane_pid}']
      listed = await ask(this.socket, [...commands, ...list], { withinMs })
    } catch (error) {
      if ((await this.#judge.lookUp(server)) === 'gone') return 'server-gone'
      throw error
    }
    const panes = listed.split('\n').map((line) => line.split(' '))
    // Another server has taken the socket: it says nothing of ours.
    if (panes.some(([pid]) => pid !== String(server.pid))) {
      if ((await this.#judge.lookUp(server)) === 'gone') return 'server-gone'
      throw new RunwardenError('refused', 'another tmux server answers there')
    }
    const found = panes.find(([, id]) => id === paneId)
    if (found === undefined) return 'closed'
    return found[2] === String(shell.pid) ? 'present' : 'respawned'
  }

  /** Why the run's process may have ended with nobody to see how; null when the pane is there. */
  async fate(withinMs: number): Promise<string | null> {
    switch (await this.presence(withinMs)) {
      case 'server-gone':
        return `the tmux server at ${this.socket} ended, and ${this.place.paneId} with it`
      case 'closed':
        return `${this.name} was closed`
      case 'respawned':
        return `${this.name} was given another process`
      case 'present':
        return null
    }
  }
}
