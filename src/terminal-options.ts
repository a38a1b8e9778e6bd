/** The options of a run's terminal: one of its own, or a pane. */
import * as v from 'valibot'
import { name, noNul } from './option-types.js'

const side = v.pipe(
  v.number(),
  v.integer('must be a whole number of characters'),
  v.minValue(1, 'must be at least 1'),
  v.maxValue(65_535, 'must be at most 65535'),
)

export const terminalSizeSchema = v.strictObject({ cols: side, rows: side })

export const ptySchema = v.strictObject({
  /** Default 80. */
  cols: v.optional(side, 80),
  /** Default 24. */
  rows: v.optional(side, 24),
  /** What the command finds in `TERM`. Default `xterm-256color`. */
  name: v.optional(name, 'xterm-256color'),
})

export const surfaceSchema = v.pipe(
  v.strictObject({
    kind: v.literal('tmux'),
    /** A new window in this session, which is made where it is not there. Default `runwarden`. */
    session: v.optional(
      v.pipe(v.string(), v.regex(/^\w[\w -]{0,63}$/, 'must be 1 to 64 letters, digits or _ - and spaces')),
    ),
    /** The window's name. Default: tmux's own. */
    window: v.optional(name),
    /** A pane that is there already, with its shell at the prompt: `%5`. It is retained. */
    pane: v.optional(v.pipe(v.string(), v.regex(/^%\d+$/, 'must be a pane id like %5'))),
    title: v.optional(name),
    /** Never close the pane: only the command and its tree are ended. Default false for a new pane. */
    retained: v.optional(v.boolean()),
    /** As tmux's `-L`. Default: the server that tmux itself would use. */
    socketName: v.optional(
      v.pipe(v.string(), v.regex(/^[\w.-]{1,64}$/, 'must be 1 to 64 letters, digits or . _ -')),
    ),
    /** As tmux's `-S`. */
    socketPath: v.optional(v.pipe(v.string(), v.nonEmpty('must not be empty'), noNul)),
  }),
  v.forward(
    v.check((one) => one.socketPath === undefined || one.socketName === undefined, 'excludes socketName'),
    ['socketPath'],
  ),
  v.forward(
    v.check(
      (one) => one.pane === undefined || (one.session === undefined && one.window === undefined),
      'excludes session and window',
    ),
    ['pane'],
  ),
  v.forward(
    v.check(
      (one) => one.pane === undefined || one.retained !== false,
      'must be true for a pane that is there already',
    ),
    ['retained'],
  ),
)
