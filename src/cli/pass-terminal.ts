/**
 * Passes our terminal through to a run that has one of its own: what is typed goes there byte for byte, and so does each new size.
 *
 * In raw mode no key is a signal to us: control-C is the command's. Another terminal can `stop` the run, and SIGTERM still interrupts it.
 */
import type { Run } from '../index.js'

interface Size {
  readonly cols: number
  readonly rows: number
}

/** Of our own terminal, or what terminals have been since there were any. */
export const terminalSize = (): Size => {
  const { isTTY, columns, rows } = process.stdout
  return isTTY ? { cols: columns || 80, rows: rows || 24 } : { cols: 80, rows: 24 }
}

export const canPassTerminal = (): boolean => process.stdin.isTTY

/** Returns the way to have our terminal back as it was. */
export const passTerminal = (run: Run): (() => void) => {
  const { stdin, stdout } = process
  const resize = (): void => {
    const { cols, rows } = terminalSize()
    run.resize(cols, rows)
  }
  const type = (chunk: Buffer): void => {
    run.write(chunk)
  }
  stdin.setRawMode(true)
  stdin.on('data', type)
  stdout.on('resize', resize)
  return () => {
    stdout.off('resize', resize)
    stdin.off('data', type)
    stdin.setRawMode(false)
    stdin.pause()
  }
}
