/**
 * Where an engine and a launcher in a pane meet: a private folder with four FIFOs.
 *
 * Owns: the descriptors, and that nobody waits for a side that is gone. The kernel closes ours when the engine dies, and the launcher
 * reads an end.
 */
import { closeSync, constants, openSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { launcherScript } from './launcher.js'
import type { LauncherOptions } from './launcher.js'

const FIFOS = ['command', 'gate', 'report', 'output'] as const
type Fifo = (typeof FIFOS)[number]

/** As long as one is open, no reader sees an end and no opening waits. */
class Hold {
  #fd: number | null

  constructor(path: string) {
    this.#fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  }

  release(): void {
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = null
  }
}

const readerOf = (path: string): Socket => {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const socket = new Socket({ fd, readable: true, writable: false })
  socket.on('error', () => undefined)
  return socket
}

export class Rendezvous {
  readonly folder: string
  readonly report: Socket
  readonly output: Socket
  readonly #holds: Readonly<Record<Fifo, Hold>>

  static async open(): Promise<Rendezvous> {
    const folder = await mkdtemp(join(tmpdir(), 'runwarden-pane-'))
    try {
      await execa('mkfifo', ['-m', '600', ...FIFOS.map((name) => join(folder, name))])
      return new Rendezvous(folder)
    } catch (error) {
      rmSync(folder, { recursive: true, force: true })
      throw error
    }
  }

  private constructor(folder: string) {
    this.folder = folder
    const pathOf = (name: Fifo): string => join(folder, name)
    this.#holds = {
      command: new Hold(pathOf('command')),
      gate: new Hold(pathOf('gate')),
      report: new Hold(pathOf('report')),
      output: new Hold(pathOf('output')),
    }
    this.report = readerOf(pathOf('report'))
    this.output = readerOf(pathOf('output'))
  }

  /** The launcher, as a file that only this user can read. Returns its path. */
  writeLauncher(options: Omit<LauncherOptions, 'folder'>): string {
    const path = join(this.folder, 'launch')
    writeFileSync(path, launcherScript({ ...options, folder: this.folder }), { mode: 0o600 })
    return path
  }

  /** The other side of `report` or `output` is there: from now on its end is the end. */
  met(name: 'report' | 'output'): void {
    this.#holds[name].release()
  }

  /** Nobody else will come. What is open stays open. */
  removeFolder(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  giveCommand(script: string): void {
    const fd = openSync(join(this.folder, 'command'), constants.O_WRONLY | constants.O_NONBLOCK)
    const writer = new Socket({ fd, readable: false, writable: true })
    // A shell that is gone takes nothing; its launcher tells of its end.
    writer.on('error', () => undefined)
    writer.end(script)
    this.#holds.command.release()
  }

  /** Lets the launcher end, or go on with a shell. */
  openGate(): void {
    this.#holds.gate.release()
  }

  /** Whoever comes, or waits, finds an end. */
  abandon(): void {
    // The names first: a launcher that comes late must not open what nobody will ever close.
    this.removeFolder()
    for (const hold of Object.values(this.#holds)) hold.release()
    this.report.destroy()
    this.output.destroy()
  }
}
