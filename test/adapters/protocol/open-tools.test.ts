/** Which tool calls are open, and under what name. */
import { describe, expect, test } from 'vitest'
import { acp, claudeStreamJson } from '../../../src/protocols.js'
import type { Protocol } from '../../../src/protocols.js'
import { acpUpdate as update } from './frames.js'
import { LIMITS, Recorder } from './recorder.js'

describe('K8: open tools', () => {
  const openAfter = (protocol: Protocol, frames: readonly unknown[]) => {
    const session = protocol.open(new Recorder(), LIMITS)
    for (const frame of frames) session.push('stdout', Buffer.from(`${JSON.stringify(frame)}\n`))
    return session.openTools.map(({ title }) => title)
  }
  const use = (id: string, name: string, parent: string | null = null) => ({
    type: 'assistant',
    parent_tool_use_id: parent,
    message: {
      content: [{ type: 'text' }, { type: 'tool_use', id, name, input: { command: 'cat secret' } }],
    },
  })

  test('K8: only calls at the top are open; what a sub-agent calls is within its own call', () => {
    expect(
      openAfter(claudeStreamJson(), [use('1', 'Task'), use('2', 'Bash', '1'), use('3', 'Read')]),
    ).toEqual(['Task', 'Read'])
  })

  test('K8: a title that may be a command line is not shown', () => {
    const command = 'curl -H "Authorization: Bearer secret" https://example.org'
    expect(openAfter(claudeStreamJson(), [use('1', command)])).toEqual(['a tool'])
    expect(
      openAfter(acp(), [update('tool_call', { toolCallId: '1', title: command, kind: 'execute' })]),
    ).toEqual(['execute'])
    expect(openAfter(acp(), [update('tool_call', { toolCallId: '1', title: command })])).toEqual(['a tool'])
  })

  test('INV-11: tools that are opened without end are forgotten, the oldest first', () => {
    const frames = [...Array(2_000).keys()].map((index) => use(String(index), `tool-${String(index)}`))
    const open = openAfter(claudeStreamJson(), frames)
    expect(open.length).toBeLessThan(500)
    expect(open.at(-1)).toBe('tool-1999')
  })
})
