/**
 * Ends the output of every run with one line, `N passed, N failed, N skipped`, after the reasons of the skipped.
 *
 * Owns: that line. It counts tests, and as failed also whatever else went wrong: a file or hook that did not load, an
 * unhandled error, a test that never finished, a global teardown that threw.
 * Does not own: the details, which another reporter shows.
 */
import type { SerializedError } from 'vitest'
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node'

interface Counts {
  passed: number
  failed: number
  skipped: number
}

export default class SummaryReporter implements Reporter {
  #counts: Counts = { passed: 0, failed: 0, skipped: 0 }
  #reasons: string[] = []
  #closeErrors = 0

  onInit(vitest: Vitest): void {
    this.#countCloseErrors(vitest)
    // At exit, because the global teardown runs after `onTestRunEnd` and may fail.
    process.once('exit', (exitCode) => this.#print(exitCode))
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const suites = modules.flatMap((module) => [module, ...module.children.allSuites()])
    const broken = suites.filter((suite) => suite.errors().length > 0).length
    const count = (state: string) => tests.filter((test) => test.result().state === state).length
    this.#counts = {
      passed: count('passed'),
      failed: count('failed') + count('pending') + broken + unhandledErrors.length,
      skipped: count('skipped'),
    }
    this.#reasons = tests.flatMap(skipReason)
  }

  /** Vitest has no hook for an error while it closes, and exits 0 after one: its logger is told, and so are we. */
  #countCloseErrors({ logger }: Vitest): void {
    const logError = logger.error.bind(logger)
    logger.error = (...words: unknown[]) => {
      if (words[0] === 'error during close') {
        this.#closeErrors += 1
        process.exitCode = 1
      }
      logError(...words)
    }
  }

  #print(exitCode: number): void {
    const { passed, skipped } = this.#counts
    const failed = this.#counts.failed + this.#closeErrors
    // A run that fails for a reason unknown here (no test found, interrupted) is not a run without failures.
    const unexplained = exitCode !== 0 && failed === 0 ? 1 : 0
    const lines = [...this.#reasons, `${passed} passed, ${failed + unexplained} failed, ${skipped} skipped`]
    process.stdout.write(`\n${lines.join('\n')}\n`)
  }
}

function skipReason(test: TestCase): string[] {
  const result = test.result()
  if (result.state !== 'skipped' || result.note === undefined) return []
  return [`skipped: ${result.note} (${test.fullName})`]
}
