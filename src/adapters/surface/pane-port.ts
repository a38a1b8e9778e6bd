/** The process port of an engine whose runs may live in panes: other runs pass through unchanged. */
import type { PaneProcessPort } from '../../actors/pane.ports.js'
import type { PaneRecord, ProcessPort } from '../../actors/ports.js'
import { LaunchedInPane, adoptedInPane } from './pane-execution.js'
import { launchInPane } from './pane-launch.js'

export const withPanes = (processes: PaneProcessPort): ProcessPort => ({
  ...processes,
  launch: async (spec) => {
    if (spec.pane === undefined) return processes.launch(spec)
    const launch = await launchInPane(spec, spec.pane, processes)
    const { kind, socket, isRetained, paneId } = spec.pane
    const pane: PaneRecord = {
      kind,
      socket,
      isRetained,
      isBorrowed: paneId !== undefined,
      place: launch.pane.place,
    }
    const { runId, attempt, marks } = spec
    const inner = await processes.adopt({
      ...{ runId, attempt, marks, pane },
      containment: launch.containment,
      identity: launch.leader,
      launchedAt: null,
    })
    return new LaunchedInPane(inner, pane, launch, processes)
  },
  adopt: async (record) => {
    const inner = await processes.adopt(record)
    return record.pane == null ? inner : adoptedInPane(inner, record.pane, record, processes)
  },
})
