/**
 * Hostile programs × tiers of containment: what each stop said, what an independent reader of /proc found, and whether that was true.
 * The table is printed.
 */
import { afterAll, describe, expect, it } from 'vitest'
import type { Engine, RunSpec } from '../../src/index.js'
import { catalogue } from '../fixtures/catalogue.js'
import type { Fixture } from '../fixtures/catalogue.js'
import { noCgroup } from '../support/cgroups.js'
import { endTree } from '../support/end-tree.js'
import { openTestEngine, startFixture } from '../support/engine.js'
import { waitFor } from '../support/wait-for.js'

const TIERS = ['group', 'group+marks', 'cgroup'] as const
type Tier = (typeof TIERS)[number]

/** The nine hostile stops, and the ones that only a cgroup holds or that fool a reader of /proc. */
const fixtures = catalogue.filter(
  ({ hostileStop, name }) =>
    hostileStop !== undefined ||
    [
      'mark-shedding-daemon',
      'renamed-title',
      'respawner',
      'late-fork-on-term',
      'shell-tool-own-session',
    ].includes(name),
)

/** Whom a tier does not reach, it names: docs/guarantees.md. */
const NAMED: Readonly<Record<Tier, readonly string[]>> = {
  group: ['double-fork-daemon', 'scrubbed-daemon', 'fork-storm'],
  'group+marks': [],
  cgroup: [],
}
/** Whom a tier cannot see at all, so that `confirmed` does not speak of it: docs/guarantees.md. */
const UNSEEN: Readonly<Record<Tier, readonly string[]>> = {
  group: ['mark-shedding-daemon'],
  'group+marks': ['mark-shedding-daemon'],
  cgroup: [],
}

const quick: RunSpec['stop'] = { termGraceMs: 300, killGraceMs: 4_000 }

interface Row {
  readonly fixture: string
  readonly tier: Tier
  readonly said: string
  readonly evidence: string
  readonly named: number
  readonly left: number
  /** The nothing it said is left is nothing, and the something it named is what is left. */
  readonly isTrue: boolean
}

const rows: Row[] = []

const stopOne = async (engine: Engine, tier: Tier, fixture: Fixture): Promise<Row> => {
  const started = await startFixture(engine, fixture.name, { stop: quick })
  const isUp = (): boolean =>
    fixture.leaderEnd === 'stays' ? started.isReady() : started.run.state.isSettled
  await waitFor(isUp, { deadlineMs: 60_000, what: `${fixture.name} is up` })
  const receipt = await started.run.cancel({ timeoutMs: 60_000 })
  const [line] = receipt.runs
  const left = started.alive()
  const named = line?.survivors ?? []
  const said = line?.status ?? 'nothing'
  const saysGone = said === 'confirmed' || said === 'already-terminal'
  const row: Row = {
    fixture: fixture.name,
    tier,
    said,
    evidence: (line?.evidence ?? []).map(({ kind }) => kind).join(' '),
    named: named.length,
    left: left.length,
    isTrue: saysGone ? left.length === 0 : named.length > 0,
  }
  await endTree(started.ledger)
  // Nothing is left for the run to wait for: its engine sees that by itself.
  await waitFor(() => started.run.state.isConfirmed, {
    deadlineMs: 30_000,
    what: `${fixture.name} is confirmed`,
  })
  return row
}

const cell = ({ fixture, tier, said, named, left, evidence, isTrue }: Row): string => {
  const what = said === 'unconfirmed' ? `${said}, ${String(named)} named` : `${said} ${evidence}`
  // `confirmed` speaks of what the tier can see, and the guarantees say that it cannot see this one.
  const truth = UNSEEN[tier].includes(fixture) ? 'beyond' : isTrue ? 'true' : 'FALSE'
  return `${truth.padEnd(7)}${what}, ${String(left)} left`
}

const cellOf = (name: string, tier: Tier): string => {
  const row = rows.find((one) => one.fixture === name && one.tier === tier)
  if (row !== undefined) return cell(row)
  return tier === 'cgroup' && noCgroup !== null ? 'skipped: no cgroup v2' : 'not run'
}

const print = (): void => {
  const line = (first: string, cells: readonly string[]): string =>
    `${first.padEnd(27)}${cells.map((text) => text.padEnd(46)).join('')}`
  const lines = fixtures.map(({ name }) =>
    line(
      name,
      TIERS.map((tier) => cellOf(name, tier)),
    ),
  )
  console.log([line('stopped', TIERS), ...lines].join('\n'))
}

describe('hostile programs in every tier', () => {
  afterAll(print)

  for (const tier of TIERS) {
    it.skipIf(tier === 'cgroup' && noCgroup !== null)(
      `C2, C5, INV-5: in the tier ${tier} a stop says gone of nobody who is there, or names who is left`,
      async () => {
        const engine = await openTestEngine({ containment: { prefer: tier } })
        for (const fixture of fixtures) {
          rows.push(await stopOne(engine, tier, fixture))
        }
        for (const row of rows.filter((one) => one.tier === tier)) {
          expect(row, JSON.stringify(row)).toMatchObject({ isTrue: !UNSEEN[tier].includes(row.fixture) })
          if (!NAMED[tier].includes(row.fixture))
            expect(row.said, JSON.stringify(row)).not.toBe('unconfirmed')
        }
      },
      600_000,
    )
  }
})
