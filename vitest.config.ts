import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    environment: 'node',
    include: ['test/**/*.test.ts'],
    // Real processes are launched and signalled: each file gets a process of its own, and two at a time
    // leave a two-core machine enough air for the deadlines under test.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // A test that passes at the second try is a fault not yet found.
    retry: 0,
    bail: 0,
    // Torn down in the opposite order.
    globalSetup: ['test/support/suite-cgroup.global-setup.ts', 'test/support/leftovers.global-setup.ts'],
    // The summary reporter comes last: its `N passed, N failed, N skipped` closes the output.
    reporters: ['default', './test/support/summary-reporter.ts'],
  },
})
