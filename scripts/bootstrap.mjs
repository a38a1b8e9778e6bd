// @ts-check
/**
 * Installs the dependencies of a fresh clone: `npm ci`, exactly as locked.
 *
 * better-sqlite3 brings a prebuilt binary where one can be fetched; elsewhere node-gyp builds it, against the headers that came with
 * this Node if they are there, so that nothing else has to be downloaded.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

const nodeRoot = dirname(dirname(process.execPath))
const hasHeaders = existsSync(join(nodeRoot, 'include', 'node', 'node.h'))
const env = hasHeaders ? { npm_config_nodedir: nodeRoot, ...process.env } : process.env

const { status } = spawnSync('npm', ['ci'], { stdio: 'inherit', env, shell: process.platform === 'win32' })
process.exit(status ?? 1)
