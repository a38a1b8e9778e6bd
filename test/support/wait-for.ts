/** Waiting without sleeping, and a folder that goes away by itself. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

const POLL_MS = 5

export interface WaitOptions {
  readonly deadlineMs: number
  /** What is awaited, for the message when it does not come. */
  readonly what: string
}

type Falsy = false | 0 | '' | null | undefined

/** Resolves with the condition's first truthy answer; rejects at the deadline, naming what did not come. */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  { deadlineMs, what }: WaitOptions,
): Promise<Exclude<T, Falsy>> {
  const endsAt = performance.now() + deadlineMs
  for (;;) {
    const answer = await condition()
    if (answer) return answer as Exclude<T, Falsy>
    if (performance.now() >= endsAt) throw new Error(`not within ${deadlineMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/** A fresh folder, removed after the test that asked for it. */
export function tempDir(): string {
  const folder = mkdtempSync(join(tmpdir(), 'runwarden-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
