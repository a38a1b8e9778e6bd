// An agent that does not want to stop: it ignores SIGTERM, and so do the two processes its tool has started. One of those
// leads a session of its own (setsid), so that a signal to the agent's process group does not reach it.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ignore = () => undefined
process.on('SIGTERM', ignore)
process.on('SIGINT', ignore)
// Should anything go wrong here, nothing stays behind for long.
setTimeout(() => process.exit(), 60_000)

const [role = 'agent'] = process.argv.slice(2)
const grow = (next, options = {}) =>
  spawn(process.execPath, [fileURLToPath(import.meta.url), next], { stdio: 'inherit', ...options })

console.log(`${role.padEnd(10)} pid ${process.pid}`)
if (role === 'agent') grow('tool')
if (role === 'tool') {
  grow('grandchild')
  grow('escapee', { detached: true })
}
