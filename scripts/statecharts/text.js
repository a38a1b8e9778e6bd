// @ts-check
/**
 * How wide text is, without a browser to ask.
 *
 * Owns: the fonts of the pictures and conservative widths: the tables are those of DejaVu, wider than what most
 * readers have, so text may end early and never runs over.
 */

/** @typedef {'title' | 'prose' | 'code'} Face */

/** @type {Readonly<Record<Face, { family: string, weight: number, perMille: readonly number[] }>>} Widths of U+0020 … U+007E. */
export const faces = {
  title: {
    family:
      "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif",
    weight: 600,
    // prettier-ignore
    perMille: [
      348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, 696, 696, 696, 696, 696, 696, 696, 696,
      696, 696, 400, 400, 838, 838, 838, 580, 1000, 774, 762, 734, 830, 683, 683, 821, 837, 372, 372, 775, 637, 995, 837, 850,
      733, 850, 770, 720, 682, 812, 774, 1103, 771, 724, 725, 457, 365, 457, 838, 500, 500, 675, 716, 593, 716, 678, 435, 716,
      712, 343, 343, 665, 343, 1042, 712, 687, 716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582, 712, 365, 712, 838,
    ],
  },
  prose: {
    family:
      "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif",
    weight: 400,
    // prettier-ignore
    perMille: [
      318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636, 636,
      636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
      603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635,
      634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
    ],
  },
  code: {
    family: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace",
    weight: 400,
    perMille: [],
  },
}

const FIRST_CHAR = 0x20
const TABLE_LENGTH = 95

/** SF Mono is the widest of the code fonts: 0.618 em against 0.602. */
const CODE_PER_MILLE = 618
/** For a character outside the tables, which may come from any font: an em. */
const OTHER_PER_MILLE = 1000

/**
 * @param {string} text
 * @param {Face} face
 * @param {number} size In px.
 * @returns {number} In px, rounded up.
 */
export function widthOf(text, face, size) {
  const { perMille } = faces[face]
  const widths = Array.from(text.replaceAll('\u00a0', ' '), (char) => {
    const index = (char.codePointAt(0) ?? 0) - FIRST_CHAR
    if (index >= TABLE_LENGTH) return OTHER_PER_MILLE
    return face === 'code' ? CODE_PER_MILLE : (perMille[index] ?? OTHER_PER_MILLE)
  })
  return Math.ceil((widths.reduce((total, width) => total + width, 0) * size) / 1000)
}

/**
 * Breaks text at spaces; a word wider than the line stays whole.
 * @param {string} text
 * @param {Face} face
 * @param {number} size
 * @param {number} maxWidth
 * @returns {readonly string[]}
 */
export function wrap(text, face, size, maxWidth) {
  /** @type {string[]} */
  const lines = []
  for (const word of text.split(' ').filter((each) => each !== '')) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`
    if (lines.length > 0 && widthOf(longer, face, size) <= maxWidth) lines[lines.length - 1] = longer
    else lines.push(word)
  }
  return lines
}
