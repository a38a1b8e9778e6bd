/** A command in a terminal of its own: what it finds there, what comes out of it, and how it ends. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { Engine, Run, RunEventOut, RunSpec } from '../../src/index.js'
import { acp } from '../../src/protocols.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { EMPTY, openTestEngine, quickStop, startFixture } from '../support/engine.js'
import { loadCores } from '../support/load.js'
import { beatsAgain, beatsOf } from '../support/beats.js'
import { readLedger, signalsOf, statOf } from '../support/proc-reader.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const onTerminal = (engine: Engine, command: string[], spec: Partial<RunSpec> = {}): Promise<Run> =>
  engine.start({ command, stdio: 'pty', stop: quickStop, ...spec })

interface Heard {
  readonly text: string
  readonly events: readonly RunEventOut[]
}

const hear = async (run: Run): Promise<Heard> => {
  const chunks: Uint8Array[] = []
  const events: RunEventOut[] = []
  for await (const event of run.events({ output: 'bytes' })) {
    events.push(event)
    if (event.type === 'bytes') chunks.push(event.chunk)
  }
  return { text: Buffer.concat(chunks).toString('latin1'), events }
}

/** Follows what a run shows until it has shown `text`. */
const follower = (
  run: Run,
): { readonly shown: () => string; readonly shows: (text: string) => Promise<void> } => {
  let shown = ''
  void (async () => {
    for await (const event of run.events({ output: 'bytes' }))
      if (event.type === 'bytes') shown += Buffer.from(event.chunk).toString('latin1')
  })()
  return {
    shown: () => shown,
    shows: async (text) => {
      await waitFor(() => shown.includes(text), { deadlineMs: 20_000, what: `${text} in ${shown}` })
    },
  }
}

describe('at the door', () => {
  it.each<[string, object, RegExp]>([
    ['a size without a terminal', { pty: { cols: 10 } }, /option pty needs stdio "pty"/],
    ['a size of nothing', { stdio: 'pty', pty: { cols: 0 } }, /pty\.cols must be at least 1, got 0/],
    [
      'a size beyond any',
      { stdio: 'pty', pty: { rows: 70_000 } },
      /pty\.rows must be at most 65535, got 70000/,
    ],
    [
      'text as its input',
      { stdio: 'pty', stdin: { text: 'x' } },
      /stdin must be "pipe" or "ignore" on a terminal$/,
    ],
    ['a stream as its input', { stdio: 'pty', stdin: Readable.from([]) }, /stdin must be "pipe" or "ignore"/],
    [
      'input for a candidate',
      { stdio: 'pty', fallback: { candidates: [{ command: ['true'], stdin: 'x' }] } },
      /fallback must have no stdin on a terminal/,
    ],
    [
      'a protocol that speaks through pipes',
      { stdio: 'pty', protocol: acp() },
      /stdio "pty" cannot be had with protocol "acp", which speaks to the agent through pipes/,
    ],
    ['another kind of stdio', { stdio: 'tty' }, /stdio must be \(pipe \| pty\), got "tty"/],
  ])('L9: %s is refused by name', async (_what, spec, message) => {
    const engine = await openTestEngine()
    const starting = engine.start({ command: ['true'], ...spec })
    await expect(starting).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringMatching(message) as string,
    })
  })
})

describe('what a command finds', () => {
  it('L9, C1: it leads its own session and group, which has the terminal, in its size, under its name', async () => {
    const engine = await openTestEngine()
    const script = 'tty; stty size; echo "$TERM"; cut -d" " -f1,5-8 /proc/$$/stat; ls -m /proc/self/fd'
    const run = await onTerminal(engine, ['sh', '-c', script], {
      pty: { cols: 101, rows: 31, name: 'vt100' },
    })
    const [tty, size, name, stat, files] = (await hear(run)).text.split('\r\n')
    expect(tty).toMatch(/^\/dev\/pts\/\d+$/)
    expect([size, name]).toEqual(['31 101', 'vt100'])
    const [pid, group, session, terminal, foreground] = (stat ?? '').split(' ')
    expect([group, session, foreground]).toEqual([pid, pid, pid])
    expect(terminal).not.toBe('0')
    // As any child of ours: what this process was itself started with may be among them.
    const ofAnyChild = spawnSync('ls', ['-m', '/proc/self/fd'], { encoding: 'utf8' }).stdout.trim()
    expect(files).toBe(ofAnyChild)
    expect(await run.outcome).toMatchObject({ status: 'completed', exitCode: 0 })
    expect((await run.gone).evidence).toMatchObject([{ kind: EMPTY }])
  })

  it('L9, R2: it bears both marks, and its identity is on record', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'scrubbed-daemon', { stdio: 'pty' })
    await started.ready()
    const [execution] = (await engine.history(started.run.id)).executions
    const [leader] = readLedger(started.ledger).members
    expect(execution?.identity).toMatchObject({ pid: leader?.pid, startTicks: leader?.startTicks })
    const environment = readFileSync(`/proc/${String(leader?.pid)}/environ`, 'latin1')
    expect(environment).toContain(`RUNWARDEN_COOKIE=${String(execution?.marks?.cookie)}`)
    const limits = readFileSync(`/proc/${String(leader?.pid)}/limits`, 'latin1')
    expect(limits).toMatch(new RegExp(`Max realtime timeout +${String(execution?.marks?.limit)}`))
  })

  it('L9: no other run holds its terminal, and it holds no other', async () => {
    const engine = await openTestEngine()
    const runs = await Promise.all([1, 2, 3].map(() => onTerminal(engine, ['sleep', '60'])))
    const piped = await engine.start({ command: ['sleep', '60'], stop: quickStop })
    const all = [...runs, piped]
    const nameOf = (run: Run): string => readFileSync(`/proc/${String(run.pid)}/comm`, 'utf8').trim()
    await waitFor(() => all.every((run) => run.pid !== undefined && nameOf(run) === 'sleep'), {
      deadlineMs: 20_000,
      what: 'four sleepers',
    })
    const links = all.map((run) =>
      readdirSync(`/proc/${String(run.pid)}/fd`)
        .map((fd) => readlinkSync(`/proc/${String(run.pid)}/fd/${fd}`))
        .filter((link) => link.includes('/pt')),
    )
    expect(links.map((of) => new Set(of).size)).toEqual([1, 1, 1, 0])
    expect(new Set(links.flat()).size).toBe(3)
  })
})

describe('launches that fail', () => {
  const script = (mode: number): string => {
    const path = join(tempDir(), 'script')
    writeFileSync(path, '#!/no/such/interpreter\n', { mode })
    return path
  }
  it.each<[string, () => string[], RegExp]>([
    [
      'a program that is not there',
      () => ['no-such-program'],
      /cannot launch no-such-program: no such program \(ENOENT\)/,
    ],
    ['a path that is not there', () => ['./no-such-program'], /no such program \(ENOENT\)/],
    ['a program without the right to run', () => [script(0o600)], /permission denied \(EACCES\)/],
    ['a folder', () => [tempDir()], /permission denied \(EACCES\)/],
    ['a program whose interpreter is missing', () => [script(0o700)], /no such program \(ENOENT\)/],
    ['too long an argument', () => ['echo', 'x'.repeat(4_000_000)], /too long \(E2BIG\)/],
  ])('L1, L9: %s is an outcome, not an exit code', async (_what, command, message) => {
    const engine = await openTestEngine()
    const run = await onTerminal(engine, command())
    expect(await run.outcome).toMatchObject({
      status: 'failed',
      reason: 'launch-failed',
      exitCode: null,
      message: expect.stringMatching(message) as string,
    })
    expect((await run.gone).evidence).toMatchObject([{ kind: 'never-launched' }])
  })

  it('L1, L9: a failed launch keeps no terminal open', async () => {
    const engine = await openTestEngine()
    const masters = (): number =>
      readdirSync('/proc/self/fd').filter((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`).includes('/pt')
        } catch {
          // Closed since it was listed.
          return false
        }
      }).length
    const before = masters()
    for (let round = 0; round < 5; round += 1)
      await (
        await onTerminal(engine, ['echo', 'x'.repeat(4_000_000)])
      ).gone
    expect(masters()).toBe(before)
  })

  it('L1: a program is looked for along the PATH of the command, from its folder', async () => {
    const folder = tempDir()
    mkdirSync(join(folder, 'bin'))
    writeFileSync(join(folder, 'bin', 'here'), '#!/bin/sh\necho found\n', { mode: 0o700 })
    const engine = await openTestEngine()
    const run = await onTerminal(engine, ['here'], {
      cwd: folder,
      env: { PATH: `/nowhere:bin:${String(process.env['PATH'])}` },
    })
    expect((await hear(run)).text).toBe('found\r\n')
  })
})

describe('output and input', () => {
  it('L9: output is one stream of raw bytes, and its end is no error', async () => {
    const engine = await openTestEngine()
    const run = await onTerminal(engine, [
      'sh',
      '-c',
      'stty -opost; printf "\\303\\050\\377one\\n"; echo two >&2',
    ])
    const { text, events } = await hear(run)
    expect(text).toBe('\xc3(\xffone\ntwo\n')
    expect(new Set(events.flatMap((event) => (event.type === 'bytes' ? [event.stream] : [])))).toEqual(
      new Set(['stdout']),
    )
    expect(events.find(({ type }) => type === 'output-ended')).toEqual({ type: 'output-ended', isCut: false })
  })

  it('L9: what is written is typed, endInput types the end of the file', async () => {
    const engine = await openTestEngine()
    const run = await onTerminal(engine, ['sh', '-c', 'stty -echo; echo ready; cat; echo over'])
    const { shows, shown } = follower(run)
    await shows('ready')
    expect(run.write('typed\n')).toBe(true)
    await shows('typed')
    run.endInput()
    expect(await run.outcome).toMatchObject({ status: 'completed', exitCode: 0 })
    await run.gone
    expect(shown()).toBe('ready\r\ntyped\r\nover\r\n')
    expect(run.write('late')).toBe(false)
    run.endInput()
  })

  it('L9: control-C that is typed reaches the program as a signal', async () => {
    const engine = await openTestEngine()
    const run = await onTerminal(engine, ['sh', '-c', 'echo ready; exec sleep 60'])
    const { shows } = follower(run)
    await shows('ready')
    run.write('\x03')
    expect(await run.outcome).toMatchObject({ status: 'failed', exitCode: null, signal: 'SIGINT' })
  })

  it('L2: output of a command that ends at once is whole, forty times', async () => {
    const engine = await openTestEngine()
    await loadCores(2)
    const heard = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const run = await onTerminal(engine, [
          'sh',
          '-c',
          `echo begin; seq 200; echo end ${String(index)}; exit 3`,
        ])
        return [await hear(run), await run.outcome] as const
      }),
    )
    for (const [index, [{ text }, outcome]] of heard.entries()) {
      expect(text.startsWith('begin\r\n')).toBe(true)
      expect(text.endsWith(`end ${String(index)}\r\n`)).toBe(true)
      expect(outcome).toMatchObject({ status: 'failed', exitCode: 3 })
    }
  }, 120_000)
})

describe('its size', () => {
  it('L9: a resize is seen by the command, refused without a terminal, and void after the end', async () => {
    const engine = await openTestEngine()
    const run = await onTerminal(engine, [
      'sh',
      '-c',
      'trap "stty size" WINCH; echo ready; while :; do sleep 0.05; done',
    ])
    const { shows } = follower(run)
    await shows('ready')
    expect(run.resize(132, 43)).toBe(true)
    await shows('43 132')
    expect(() => run.resize(0, 43)).toThrow(/resize: option cols must be at least 1, got 0/)
    await run.cancel()
    await run.gone
    expect(run.resize(80, 24)).toBe(false)
    const piped = await engine.start({ command: ['true'] })
    expect(() => piped.resize(80, 24)).toThrow(/resize: run .* has no terminal here/)
  })
})

describe('a pause', () => {
  it('L9, O1: on a terminal the tree stands still whatever the terminal does, goes on, and is ended while it is paused', async () => {
    const engine = await openTestEngine()
    const metronome = await startFixture(engine, 'forking-heartbeat')
    await metronome.ready()
    const started = await startFixture(engine, 'heartbeat', { stdio: 'pty' })
    const roles = ['leader', 'child', 'grandchild']
    await started.ready()
    await beatsAgain(started.ledger, roles)
    expect(await started.run.pause()).toEqual({ status: 'frozen', running: [] })
    const before = beatsOf(started.ledger).length
    // What the kernel does for a terminal reaches nobody who is stopped.
    expect([started.run.resize(120, 40), started.run.write('typed\n')]).toEqual([true, true])
    await beatsAgain(metronome.ledger, ['leader', 'child'], 8)
    expect(beatsOf(started.ledger)).toHaveLength(before)
    await started.run.resume()
    await beatsAgain(started.ledger, roles)
    await started.run.pause()
    expect((await started.run.cancel()).status).toBe('confirmed')
    expect(started.alive()).toEqual([])
  })

  it('L9, O1: an interactive shell does not notice that its job in the foreground stood still', async (context) => {
    if (spawnSync('bash', ['--version']).status !== 0) context.skip('no bash')
    const engine = await openTestEngine()
    const env = { ...process.env, PS1: 'prompt> ', HISTFILE: '' }
    const run = await onTerminal(engine, ['bash', '--norc', '--noprofile', '-i'], { env })
    const { shows, shown } = follower(run)
    await shows('prompt> ')
    run.write('bash -c \'echo u""p; read line; echo "got $line"; exit 3\'; echo "code $?"; exit\n')
    await shows('up\r\n')
    for (let round = 0; round < 5; round += 1) {
      expect(await run.pause()).toEqual({ status: 'frozen', running: [] })
      await run.resume()
    }
    run.write('a line\n')
    await shows('got a line\r\ncode 3')
    expect(await run.outcome).toMatchObject({ status: 'completed' })
    expect(shown()).not.toContain('Stopped')
  })
})

describe('how it ends', () => {
  it('L2: a process that holds the terminal after its leader is swept, and the outcome does not wait', async () => {
    const engine = await openTestEngine()
    const run = await onTerminal(engine, [
      'sh',
      '-c',
      'trap "" HUP TERM; (while :; do sleep 1; done) & exit 4',
    ])
    const { events } = await hear(run)
    expect(await run.outcome).toMatchObject({ status: 'failed', exitCode: 4 })
    expect(events.find(({ type }) => type === 'output-ended')).toEqual({ type: 'output-ended', isCut: false })
    const gone = await run.gone
    expect(gone.evidence).toMatchObject([{ kind: EMPTY }])
  })

  it('L6: a terminal that is flooded delays no stop, and is bounded in memory', async () => {
    const engine = await openTestEngine()
    const runs = await Promise.all([1, 2].map(() => onTerminal(engine, ['yes', 'x'.repeat(200)])))
    let bytes = 0
    void (async () => {
      for await (const event of runs[0]?.events({ output: 'bytes' }) ?? [])
        if (event.type === 'bytes') bytes += event.chunk.length
    })()
    const before = process.memoryUsage().rss
    await waitFor(() => bytes > 20_000_000, { deadlineMs: 60_000, what: '20 MB of output' })
    expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000)
    const receipt = await engine.stop({ all: true })
    expect(receipt.status).toBe('confirmed')
  }, 90_000)

  it('INV-1: the terminal is not hung up before the stop is on record, and TERM comes first', async () => {
    const engine = await openTestEngine()
    const place = withLedger()
    const [program, ...args] = fixtureCommand('ignore-term')
    const run = await onTerminal(engine, [program, ...args], { env: { ...process.env, ...place.env } })
    await waitFor(() => readLedger(place.ledger).readyAt !== undefined, {
      deadlineMs: 20_000,
      what: 'it is up',
    })
    const { runs } = await run.cancel()
    expect(runs).toMatchObject([{ status: 'confirmed', evidence: [{ kind: EMPTY }] }])
    // A hang-up would come as SIGHUP, and from the kernel: nobody has asked for one.
    expect(signalsOf(readLedger(place.ledger), 'leader').sort()).toEqual(['SIGCONT', 'SIGTERM'])
    const { transitions } = await engine.history(run.id)
    expect(transitions.flatMap(({ effects }) => effects.map(({ kind }) => kind))).toEqual(
      expect.arrayContaining(['process.terminate', 'process.kill']),
    )
  })

  it('P4: a cancel during the launch leaves nothing', async () => {
    const engine = await openTestEngine()
    const receipts = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const run = await onTerminal(engine, ['sleep', '60'])
        return [await run.cancel(), run] as const
      }),
    )
    for (const [receipt, run] of receipts) {
      expect(receipt.status).toBe('confirmed')
      if (run.pid !== undefined) expect(statOf(run.pid)).toBeUndefined()
    }
  })
})
