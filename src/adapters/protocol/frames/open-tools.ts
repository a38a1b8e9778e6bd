/**
 * The tool calls of one turn: which are open, and whether a look at one shows anything new (K3).
 *
 * Bounded: of an agent that opens tools without end the oldest are forgotten.
 */
import type { OpenTool } from '../../../actors/ports.js'
import type { ToolLook } from './frame-meaning.js'

const TOOLS_MAX = 256
const ID_CHARS_MAX = 256
const UNNAMED = 'a tool'
/** Names of tools and kinds. Anything else may be a command line, and is not shown (K8). */
const SAFE_TITLE = /^[\w.:/@-][\w .:/@-]{0,63}$/

interface Tool {
  title: string
  /** Fingerprints of the parts as last seen. */
  readonly parts: Map<string, number>
}

/** FNV-1a over the text of a value: enough to tell whether it is the same as before. */
const fingerprint = (value: unknown): number => {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  return hash
}

const safeTitle = (title: string | undefined): string =>
  title !== undefined && SAFE_TITLE.test(title) ? title : UNNAMED

/** Puts a tool in, and the oldest out where there is no room. */
const keep = (tools: Map<string, Tool>, id: string, tool: Tool): void => {
  const [oldest] = tools.keys()
  if (tools.size >= TOOLS_MAX && oldest !== undefined) tools.delete(oldest)
  tools.set(id, tool)
}

export class OpenTools {
  readonly #open = new Map<string, Tool>()
  /** Remembered, so that a look at one that shows nothing new is told from one that does. */
  readonly #closed = new Map<string, Tool>()

  /** The open ones, oldest first. */
  get open(): readonly OpenTool[] {
    return [...this.#open].map(([id, { title }]) => ({ id, title }))
  }

  clear(): void {
    this.#open.clear()
    this.#closed.clear()
  }

  /** Takes a look into account; true when it shows something that no look before it showed. */
  see(look: ToolLook): boolean {
    const id = look.id.slice(0, ID_CHARS_MAX)
    const wasOpen = this.#open.get(id)
    const known = wasOpen ?? this.#closed.get(id)
    const tool = known ?? { title: UNNAMED, parts: new Map<string, number>() }
    if (tool.title === UNNAMED) tool.title = safeTitle(look.title)
    const isOpen = look.isClosed === undefined ? known === undefined || wasOpen !== undefined : !look.isClosed
    const hasTurned = known === undefined || isOpen !== (wasOpen !== undefined)
    if (hasTurned) {
      this.#open.delete(id)
      this.#closed.delete(id)
      keep(isOpen ? this.#open : this.#closed, id, tool)
    }
    return hasNewPart(tool, look.parts) || hasTurned || look.isDelta === true
  }
}

const hasNewPart = (tool: Tool, parts: ToolLook['parts']): boolean => {
  let isNew = false
  for (const [part, value] of Object.entries(parts)) {
    if (value === undefined) continue
    const now = fingerprint(value)
    isNew ||= tool.parts.get(part) !== now
    tool.parts.set(part, now)
  }
  return isNew
}
