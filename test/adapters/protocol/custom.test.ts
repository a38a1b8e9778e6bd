/** A protocol that the host classifies line by line. */
import { describe, expect, test } from 'vitest'
import { custom } from '../../../src/protocols.js'
import { LIMITS, Recorder } from './recorder.js'

describe('K2: a protocol of the host’s own', () => {
  const spoken = custom({
    name: 'spoken',
    classify: (line) => {
      if (line === 'boom') throw new Error('the host’s fault')
      if (line === 'done') return { is: 'completed', isOk: true, text: 'yes' }
      if (line.startsWith('open ')) return [{ is: 'tool-opened', id: '1', title: line.slice(5) }]
      if (line.startsWith('seen ')) return { is: 'tool-updated', id: '1', seen: line.slice(5) }
      return line === 'work' ? 'progress' : null
    },
  })

  test('K2: says of each line what it is', () => {
    const sink = new Recorder()
    const session = spoken.open(sink, LIMITS)
    session.push('stdout', Buffer.from('idle\nwork\nopen make\nseen a\n'))
    expect(session.openTools).toEqual([{ id: '1', title: 'make' }])
    session.push('stderr', Buffer.from('seen a\n'))
    session.push('stdout', Buffer.from('seen b\ndone\n'))
    expect(sink.heard).toEqual(['progress', 'progress', 'completed'])
    expect(sink.results).toEqual([{ isOk: true, text: 'yes' }])
    expect(session.openTools).toEqual([])
  })

  test('P19: a throw of the host makes its line traffic, and reaches nothing else', () => {
    const sink = new Recorder()
    const session = spoken.open(sink, LIMITS)
    session.push('stdout', Buffer.from('boom\nboom\nwork\n'))
    expect(sink.heard).toEqual(['unknownFrame', 'progress'])
    expect(sink.unknown).toEqual(['(classify failed)'])
  })
})
