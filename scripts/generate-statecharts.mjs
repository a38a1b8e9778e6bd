// @ts-check
/**
 * Writes statecharts/ from the machines in dist/: `npm run charts`. With machines that are built elsewhere:
 * node scripts/generate-statecharts.mjs <folder of the built machines>.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { charts } from './statecharts/charts.js'
import { lacksIn } from './statecharts/definition.js'
import { generate } from './statecharts/generate.js'
import { geometryOf, overlapsIn } from './statecharts/geometry.js'
import { pageWith } from './statecharts/pages.js'

const machines = resolve(process.argv[2] ?? join(import.meta.dirname, '../dist/machines'))
const folder = join(import.meta.dirname, '../statecharts')
mkdirSync(folder, { recursive: true })

for (const { name, load } of charts) {
  const { machine, isInternal } = await load((path) => import(pathToFileURL(join(machines, path)).href))
  const { definition, picture, overview, files } = await generate(machine, isInternal)
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text)
  const page = join(folder, `${name}.md`)
  if (existsSync(page)) writeFileSync(page, pageWith(readFileSync(page, 'utf8'), definition))

  const pictures = overview ? [picture, overview] : [picture]
  const faults = [...lacksIn(definition), ...pictures.flatMap((each) => overlapsIn(geometryOf(each)))]
  console.log(`${name}: ${Math.round(picture.width)} × ${Math.round(picture.height)} px`)
  for (const fault of faults) console.error(`  ${fault}`)
  if (faults.length > 0) process.exitCode = 1
}
