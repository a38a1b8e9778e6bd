/** The figures for people: one Markdown table, which a terminal shows as well. */
import type { Measured, Report, Spread } from './measure.js'

const figure = (value: number): string => {
  if (!Number.isFinite(value)) return '–'
  if (value !== 0 && Math.abs(value) < 0.01) return value.toPrecision(2)
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2)
}

const spread = ({ median, min, max }: Spread): string => `${figure(median)} (${figure(min)}–${figure(max)})`

const paramsOf = ({ params }: Report): string =>
  Object.entries(params)
    .map(([name, value]) => `${name} ${value.toLocaleString('en')}`)
    .join(', ')

const moreOf = ({ more }: Measured): string =>
  Object.entries(more)
    .map(([name, value]) => `${name} ${figure(value)}`)
    .join(', ')

const rowOf = (report: Report, one: Measured): string[] => [
  report.id,
  paramsOf(report),
  one.contender,
  one.why ?? `${figure(one.value.median)} ${report.unit}`,
  one.why === null ? spread(one.ratio) : '–',
  moreOf(one),
]

const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`

export const tableOf = (reports: readonly Report[]): string =>
  [
    line(['', 'parameters', 'contender', 'median', 'ratio to the floor (least–most)', 'also']),
    line(['---', '---', '---', '---', '---', '---']),
    ...reports.flatMap((report) => report.measured.map((one) => line(rowOf(report, one)))),
  ].join('\n')

export const verdictsOf = (reports: readonly Report[]): string =>
  reports
    .map(
      (report) =>
        `- ${report.id} ${paramsOf(report)}: ${report.isReached ? 'reached' : 'NOT reached'} (${report.reach}); ` +
        `results ${report.isSameResult ? 'alike' : 'DIFFER'}; ${report.rounds} rounds`,
    )
    .join('\n')
