/** `runwarden logs`: what a run wrote, as it was recorded. */
import { StringDecoder } from 'node:string_decoder'
import type { Command } from 'commander'
import type { LogPiece } from '../index.js'
import { printJson } from './output.js'
import { stderr, stdout } from './streams.js'
import { examples, readingStore, verb } from './verb.js'
import type { SharedOptions } from './verb.js'

interface LogsOptions extends SharedOptions {
  readonly follow?: boolean
}

const printRaw = async (piece: LogPiece): Promise<void> => {
  if (piece.kind === 'gap')
    await stderr.write('runwarden: earlier output is missing here: the log has a maximum size\n')
  else await (piece.stream === 'stdout' ? stdout : stderr).write(piece.bytes)
}

/** A character whose bytes lie in two pieces belongs to the later one. */
const jsonPrinter = (): ((piece: LogPiece) => Promise<void>) => {
  const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  return async (piece) => {
    if (piece.kind === 'gap') return printJson({ isGap: true })
    const { stream, at, bytes } = piece
    const text = decoders[stream].write(bytes)
    if (text !== '') await printJson({ stream, at, text })
  }
}

export const addLogs = (program: Command): void => {
  verb(program, 'logs', 'print the recorded output of a run')
    .argument('<run>', 'the id of the run')
    .option('-f, --follow', 'wait for more, until the run is confirmed gone')
    .addHelpText(
      'after',
      `${examples('runwarden logs run-42', 'runwarden logs -f run-42 2>/dev/null', 'runwarden logs --json run-42')}

Bytes come out as they were written, stdout to stdout and stderr to stderr; with --json
one object a piece: {"stream", "at", "text"}. Of several attempts the last one is shown.`,
    )
    .action(async (runId: string, _options: unknown, self: Command) => {
      const options = self.optsWithGlobals<LogsOptions>()
      const print = options.json === true ? jsonPrinter() : printRaw
      await readingStore(options, async (records) => {
        for await (const piece of records.logs(runId, { follow: options.follow === true })) {
          await print(piece)
          // `| head` has seen enough.
          if (stdout.closedBy !== null) return
        }
      })
    })
}
