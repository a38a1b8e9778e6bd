/**
 * The shell scripts by which a command gets into a pane.
 *
 * tmux starts (or a shell in the pane is told to start) the launcher, which starts the agent's shell, waits for its end and tells how it
 * came. The launcher bears no mark and is not signalled: tmux continues whatever of its own children is stopped, so that a command that
 * is to be frozen must not be one. The agent's shell bears the cookie from its exec on, says which process it is, and waits: it is
 * identified and marked before it is given the command. Without the command, or with the engine gone, both end by themselves.
 */

import { COOKIE_VARIABLE } from '../../actors/ports.js'

/** Borne already; the pane's own; the shell's own. To export these would fail, or undo what is right. */
const NOT_EXPORTED = new Set(
  `${COOKIE_VARIABLE} TERM TMUX TMUX_PANE _ UID EUID PPID GROUPS OPTIND BASHOPTS SHELLOPTS BASH_VERSINFO`.split(
    ' ',
  ),
)
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

export const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/** Opens a FIFO in one direction without waiting for the other side: where there is none, the end comes at once. */
const opened = (fd: number, direction: '<' | '>', name: string): string =>
  `8<>"$d/${name}" ${String(fd)}${direction}"$d/${name}" 8>&-`

/** 5: stderr. 6: the command, once. 9: what is told. */
const AGENT = 'exec 2>&5 5>&-; echo "agent $$" >&9; s=$(cat <&6); eval "$s"'

export interface LauncherOptions {
  readonly folder: string
  readonly cookies: string
  /** Written to the terminal after the last of the command's output. */
  readonly endMark: string
  /** The pane goes on with a shell of its user's. */
  readonly endsInShell: boolean
}

export const launcherScript = ({ folder, cookies, endMark, endsInShell }: LauncherOptions): string =>
  [
    // What a shell says of a command that was killed is no output of the command. It says it on the stderr of its start, or of the
    // command's redirection: so neither is the terminal.
    '[ "$1" = quiet ] || exec /bin/sh "$0" quiet 5>&2 2>/dev/null',
    `d=${quote(folder)}`,
    `exec ${opened(6, '<', 'command')} ${opened(7, '<', 'gate')} ${opened(9, '>', 'report')} || exit 1`,
    // Caught, not ignored: the command begins with the defaults, and control-C ends it without us.
    'trap : INT QUIT TERM',
    `/usr/bin/env -i TERM="$TERM" TMUX="$TMUX" TMUX_PANE="$TMUX_PANE" ${COOKIE_VARIABLE}=${quote(cookies)} \\`,
    `  /bin/sh -c ${quote(AGENT)} runwarden 7<&-`,
    's=$?',
    // An engine that has died could not.
    '[ ! -d "$d" ] || /bin/rm -rf "$d"',
    'echo "exit $s" >&9',
    `printf %s ${quote(endMark)}`,
    'exec 6<&- 9>&-',
    // Until all output has been read, or whoever reads it is gone.
    'read -r _ <&7',
    'exec 7<&-',
    ...(endsInShell ? ['trap - INT QUIT TERM', 'exec "${SHELL:-/bin/sh}" 2>&5 5>&-'] : []),
    'exit "$s"',
    '',
  ].join('\n')

export interface CommandOptions {
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** L7: it goes through a FIFO, from memory to memory. Its last line is the exec, so that a part of it starts nothing. */
export const commandScript = ({ command, cwd, env }: CommandOptions): string => {
  const exported = Object.entries(env).flatMap(([name, value]) =>
    value === undefined || !NAME.test(name) || NOT_EXPORTED.has(name)
      ? []
      : [`export ${name}=${quote(value)}`],
  )
  return [
    ...exported,
    `cd ${quote(cwd)} || exit 126`,
    `set -- ${command.map(quote).join(' ')}`,
    'exec "$@" 6<&- 9>&-',
  ].join('\n')
}
