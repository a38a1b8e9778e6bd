/** A host program that is root without the right to signal other users' processes: what it cannot end stays. */
import { spawn, spawnSync } from 'node:child_process'

const DROPPED = ['--bounding-set=-kill', '--inh-caps=-kill']

/** Where this is false a test says so, and is skipped. */
export const canDropKill = (): boolean =>
  process.getuid?.() === 0 && spawnSync('setpriv', [...DROPPED, 'true']).status === 0

/** Runs a module's source to its end; what it printed, which is one JSON object. */
export async function hostWithoutKill(
  source: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Record<string, unknown>> {
  const command = [process.execPath, '--input-type=module', '-e', source]
  const host = spawn('setpriv', [...DROPPED, ...command], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  host.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await new Promise((resolve) => host.once('close', resolve))
  return JSON.parse(text) as Record<string, unknown>
}
