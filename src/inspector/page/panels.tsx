/** Beside the journal: processes, attempts, orders with their receipts, notices. */
import type { RunHistory, RunProcess } from '../../index.js'
import type { Execution } from '../wire.js'
import { bytes, duration, timeOfDay } from './format.js'
import { processes, run } from './run-state.js'
import { toneOf } from './tones.js'

const STATES: Readonly<Record<string, string>> = {
  R: 'runs',
  S: 'sleeps',
  D: 'waits for the disk',
  T: 'stopped',
  t: 'traced',
  Z: 'zombie',
  I: 'idle',
}

/** Parents before their children, with how deep each stands. */
const asTree = (
  all: readonly RunProcess[],
): readonly { readonly one: RunProcess; readonly depth: number }[] => {
  const pids = new Set(all.map(({ pid }) => pid))
  const below = (parent: number | null, depth: number): { one: RunProcess; depth: number }[] =>
    all
      .filter(({ parentPid }) =>
        parent === null ? parentPid === null || !pids.has(parentPid) : parentPid === parent,
      )
      .flatMap((one) => [{ one, depth }, ...below(one.pid, depth + 1)])
  return below(null, 0)
}

export const Processes = () => {
  const seen = processes.value
  if (seen === null) return <p class="empty">Looking…</p>
  if (seen.problem !== null) return <p class="empty">They cannot be seen from here: {seen.problem}</p>
  if (seen.processes.length === 0) return <p class="empty">No process of this run is alive.</p>
  return (
    <table class="grid">
      <thead>
        <tr>
          <th scope="col">Process</th>
          <th scope="col">PID</th>
          <th scope="col">State</th>
          <th scope="col" class="number">
            CPU
          </th>
          <th scope="col" class="number">
            Memory
          </th>
        </tr>
      </thead>
      <tbody>
        {asTree(seen.processes).map(({ one, depth }) => (
          <tr key={one.pid}>
            <td>
              <span class="branch" aria-hidden="true">
                {depth === 0 ? '' : `${'  '.repeat(depth - 1)}└ `}
              </span>
              {one.name}
            </td>
            <td>{one.pid}</td>
            <td title={STATES[one.state]}>
              <span class={`proc-state proc-${one.state}`}>{one.state}</span> {STATES[one.state] ?? ''}
            </td>
            <td class="number">
              {seen.cpu.has(one.pid) ? `${(seen.cpu.get(one.pid) ?? 0).toFixed(0)} %` : '–'}
            </td>
            <td class="number">{one.rssBytes === null ? '–' : bytes(one.rssBytes)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const exitOf = ({ exit }: Execution): string =>
  exit === undefined ? '–' : exit.signal !== null ? exit.signal : `code ${String(exit.exitCode ?? '?')}`

export const Attempts = () => {
  const executions = run.value?.executions ?? []
  if (executions.length === 0) return <p class="empty">Nothing was launched.</p>
  return (
    <table class="grid">
      <thead>
        <tr>
          <th scope="col">Attempt</th>
          <th scope="col">PID</th>
          <th scope="col">Containment</th>
          <th scope="col">Exit</th>
          <th scope="col">Gone</th>
        </tr>
      </thead>
      <tbody>
        {executions.map((one) => (
          <tr key={one.attempt}>
            <td>{one.attempt}</td>
            <td>{one.identity?.pid ?? '–'}</td>
            <td>{one.containment ?? '–'}</td>
            <td>{exitOf(one)}</td>
            <td>
              {one.confirmedAt === undefined ? (
                <span class="ink-stopping">not proven</span>
              ) : (
                <>
                  <b class="ink-good">{one.evidence}</b> after{' '}
                  {duration(one.confirmedAt - (one.launchedAt ?? one.confirmedAt))}
                </>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

type Order = RunHistory['orders'][number]

/** What the receipt says of this run. */
export const Answer = ({ order: { line } }: { readonly order: Order }) => (
  <>
    <span class={`badge tone-${line.status === 'requested' ? 'stopping' : toneOf(line.status)}`}>
      {line.status}
    </span>{' '}
    {line.evidence === undefined ? null : `by ${line.evidence.map(({ kind }) => kind).join(', ')}`}
    {line.confirmedAt === undefined ? null : ` in ${duration(line.confirmedAt - line.requestedAt)}`}
    {(line.survivors ?? []).length === 0
      ? null
      : `still alive: ${(line.survivors ?? []).map(({ name, pid }) => `${name} (${String(pid)})`).join(', ')}`}
    {line.error === undefined ? null : ` ${line.error}`}
    {line.repeated ? ' · joined an earlier order' : null}
  </>
)

export const Orders = () => {
  const orders = run.value?.orders ?? []
  if (orders.length === 0) return <p class="empty">Nobody has asked anything of this run.</p>
  return (
    <ul class="cards">
      {[...orders].reverse().map((order) => (
        <li key={order.orderId} class="card">
          <p>
            <b>{order.isForced ? `${order.mode}, forced` : order.mode}</b> by {order.by}
            <time>{timeOfDay(order.requestedAt)}</time>
          </p>
          {order.reason === '' ? null : <p class="quiet">“{order.reason}”</p>}
          <p>
            <Answer order={order} />
          </p>
        </li>
      ))}
    </ul>
  )
}

export const Notices = () => {
  const notices = run.value?.notices ?? []
  if (notices.length === 0) return <p class="empty">There was nothing to tell.</p>
  return (
    <ul class="cards">
      {[...notices].reverse().map((notice) => (
        <li
          key={`${String(notice.at)} ${notice.kind}`}
          class={notice.withdrawnAt === undefined ? 'card' : 'card withdrawn'}
        >
          <p>
            <b>{notice.kind}</b> turn {notice.generation}
            {notice.withdrawnAt === undefined ? null : ' · withdrawn'}
            <time>{timeOfDay(notice.at)}</time>
          </p>
          <p>{notice.text}</p>
        </li>
      ))}
    </ul>
  )
}
