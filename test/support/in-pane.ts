/** Runs in panes of a test's own tmux server. */
import { identityOf, isAlive } from './proc-reader.js'
import type { Engine, Run, RunSpec } from '../../src/index.js'
import { quickStop } from './engine.js'
import type { TestTmux } from './tmux.js'

type Surface = NonNullable<RunSpec['surface']>

/** For commands and panes that only have to be there. */
export const SLEEP = ['sleep', '600']

export const surfaceOn = (tmux: TestTmux, rest: Partial<Surface> = {}): Surface => ({
  kind: 'tmux',
  socketName: tmux.socketName,
  ...(rest.pane === undefined ? { session: 'it' } : {}),
  ...rest,
})

export const inPane = (
  engine: Engine,
  tmux: TestTmux,
  command: readonly string[],
  { surface, ...spec }: Partial<RunSpec> = {},
): Promise<Run> =>
  engine.start({ command: [...command], stop: quickStop, surface: surfaceOn(tmux, surface), ...spec })

/** Where the run was launched, and its command's process. */
export const launched = async (
  run: Run,
): Promise<{ readonly paneId: string; readonly pid: number; readonly isAlive: () => boolean }> => {
  for await (const event of run.events({ output: 'none' })) {
    if (event.type === 'launched') {
      const identity = identityOf(event.pid)
      return {
        paneId: event.pane?.paneId ?? '',
        pid: event.pid,
        isAlive: () => identity !== undefined && isAlive(identity),
      }
    }
    if (event.type === 'settled') throw new Error(event.outcome.message)
  }
  throw new Error('the run ended before it was launched')
}
