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
import { overviewOf } from './overview.js'
import { svgOf } from './svg.js'

/**
 * @typedef {object} Generated
 * @property {import('./definition.js').Definition} definition
 * @property {import('./layout.js').Picture} picture
 * @property {import('./layout.js').Picture | null} overview  Of a machine with regions.
 * @property {Readonly<Record<string, string>>} files  Text by file name, below `statecharts/`.
 */

/**
 * @param {import('xstate').AnyStateMachine} machine
 * @param {(eventType: string) => boolean} [isInternal] Events that the machine's host refuses from outside.
 * @returns {Promise<Generated>}
 */
export async function generate(machine, isInternal) {
  const definition = definitionOf(machine, isInternal)
  const drawing = drawingOf(definition)
  const picture = await pictureOf(drawing)
  const { id } = definition
  // A machine with regions is too large to be followed with the eyes; the others are small as they are.
  const overview = drawing.root.kind === 'parallel' ? await pictureOf(overviewOf(drawing)) : null
  return {
    definition,
    picture,
    overview,
    files: {
      [`${id}.json`]: `${JSON.stringify(definition, null, 2)}\n`,
      [`${id}.mmd`]: mermaidOf(definition),
      [`${id}.svg`]: svgOf(picture),
      ...(overview && { [`${id}.overview.svg`]: svgOf(overview) }),
    },
  }
}
