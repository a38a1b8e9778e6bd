/** The page: one script and one stylesheet, with no address of anywhere in them. Run by `npm run build`. */
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

export default defineConfig({
  root: fileURLToPath(new URL('src/inspector/page', import.meta.url)),
  base: './',
  // The chart's stylesheet is cut out of the drawing by the server.
  build: {
    outDir: fileURLToPath(new URL('dist/inspector/page', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    // What is bundled keeps its notice.
    license: { fileName: 'licenses.md' },
    modulePreload: false,
    cssCodeSplit: false,
    rolldownOptions: {
      external: ['./chart.css'],
      output: { entryFileNames: 'page.js', assetFileNames: 'page[extname]' },
    },
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
})
