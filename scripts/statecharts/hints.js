// @ts-check
/**
 * What the search in generate-statecharts.tune.mjs found for each column. Hints only ever make a chart smaller: one for
 * a state that is gone is ignored, and a chart without hints is right as well.
 */
import { readFileSync } from 'node:fs'

/** @type {Readonly<Record<string, import('./elk.js').Hints>>} By the id of the box at the column's top. */
const hints = JSON.parse(readFileSync(new URL('./hints.json', import.meta.url), 'utf8'))

/** Boxes of an overview are smaller, and have hints of their own. @param {string} id @param {boolean} [isOverview] */
const hintKey = (id, isOverview) => (isOverview ? `${id}:overview` : id)

/** @param {string} id @param {boolean} [isOverview] @returns {import('./elk.js').Hints} */
export const hintsFor = (id, isOverview) => hints[hintKey(id, isOverview)] ?? {}
