// @ts-check
/**
 * All that is generated from one machine.
 *
 * Owns: which files there are. Pure: it reads and writes none (but for hints.json, which is part of this code).
 */
import { definitionOf } from './definition.js'
import { drawingOf } from './drawing.js'
import { pictureOf } from './layout.js'
import { mermaidOf } from './mermaid.js'
import { svgOf } from './svg.js'

/**
 * @typedef {object} Generated
 * @property {import('./definition.js').Definition} definition
 * @property {import('./layout.js').Picture} picture
 * @property {Readonly<Record<string, string>>} files  Text by file name, below `statecharts/`.
 */

/**
 * @param {import('xstate').AnyStateMachine} machine
 * @param {(eventType: string) => boolean} [isInternal] Events that the machine's host refuses from outside.
 * @returns {Promise<Generated>}
 */
export async function generate(machine, isInternal) {
  const definition = definitionOf(machine, isInternal)
  const picture = await pictureOf(drawingOf(definition))
  const { id } = definition
  return {
    definition,
    picture,
    files: {
      [`${id}.json`]: `${JSON.stringify(definition, null, 2)}\n`,
      [`${id}.mmd`]: mermaidOf(definition),
      [`${id}.svg`]: svgOf(picture),
    },
  }
}
