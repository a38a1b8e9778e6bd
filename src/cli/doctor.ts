/** `runwarden doctor`: what this machine can promise, and why not more (C10). */
import type { Command } from 'commander'
import { inspectMachine } from '../doctor.js'
import type { MachineFact, MachineReport } from '../doctor.js'
import { EXIT } from './exit-codes.js'
import { coloursFor, printJson, printLine, printLines } from './output.js'
import type { Colours } from './output.js'
import { stdout } from './streams.js'
import { examples, verb } from './verb.js'
import type { SharedOptions } from './verb.js'

const MARK = { yes: '✓', no: '✗', unused: '·' } as const

const lineOf = ({ name, answer, reason }: MachineFact, colours: Colours): string => {
  const paint = { yes: colours.green, no: colours.red, unused: colours.dim }[answer]
  return `${paint(MARK[answer])} ${name.padEnd(12)} ${reason}`
}

const verdictOf = ({ containment }: MachineReport): string =>
  containment === null
    ? 'runwarden cannot be used here.'
    : `A run is held by ${containment}. \`confirmed\` means: nothing is left that can be recognised by that.`

export const addDoctor = (program: Command): void => {
  verb(program, 'doctor', 'say what this machine can promise, and why')
    .addHelpText('after', examples('runwarden doctor', 'runwarden doctor --json | jq .containment'))
    .action(async (_options: unknown, self: Command) => {
      const report = await inspectMachine()
      if (self.optsWithGlobals<SharedOptions>().json === true) {
        await printJson(report)
      } else {
        const colours = coloursFor(stdout)
        await printLines(report.facts.map((fact) => lineOf(fact, colours)))
        await printLine(`\n${verdictOf(report)}`)
      }
      process.exitCode = report.isUsable ? EXIT.ok : EXIT.nothingUsable
    })
}
