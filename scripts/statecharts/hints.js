// @ts-check
/**
 * What the search in generate-statecharts.tune.mjs found for each column. Hints only ever make a chart smaller: one for
 * a state that is gone is ignored, and a chart without hints is right as well.
 */
import { readFileSync } from 'node:fs'

/** @type {Readonly<Record<string, import('./elk.js').Hints>>} By the id of the box at the column's top. */
const hints = JSON.parse(readFileSync(new URL('./hints.json', import.meta.url), 'utf8'))

/** @param {string} id @returns {import('./elk.js').Hints} */
export const hintsFor = (id) => hints[id] ?? {}
