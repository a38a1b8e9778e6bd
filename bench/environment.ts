/** Which machine, and which versions, the figures are of. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { arch, availableParallelism, cpus, platform, release, totalmem } from 'node:os'

const require = createRequire(import.meta.url)
const PACKAGES = ['xstate', 'kysely', 'better-sqlite3', 'execa'] as const

const versionOf = (name: string): string => {
  for (const folder of require.resolve.paths(name) ?? []) {
    try {
      return (JSON.parse(readFileSync(`${folder}/${name}/package.json`, 'utf8')) as { version: string })
        .version
    } catch {
      // Not in this folder.
    }
  }
  return 'unknown'
}

export const environment = (): Record<string, string | number> => ({
  at: new Date().toISOString(),
  node: process.version,
  system: `${platform()} ${release()} ${arch()}`,
  cores: availableParallelism(),
  cpu: cpus().at(0)?.model ?? 'unknown',
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  user: process.getuid?.() === 0 ? 'root' : 'plain',
  ...Object.fromEntries(PACKAGES.map((name) => [name, versionOf(name)])),
})
