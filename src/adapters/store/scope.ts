/** Which runs are meant, as conditions on `runwarden_run`. */
import type { ExpressionBuilder, ExpressionWrapper, SqlBool } from 'kysely'
import type { StopScope } from '../../actors/store.ports.js'
import type { Database } from './schema.js'

/** The chart's own answer to "does this scope cover this run?", given by the composition root. */
export type IsInScope = (
  scope: StopScope,
  run: {
    readonly runId: string
    readonly session?: string | null | undefined
    readonly task?: string | null | undefined
    readonly labels?: Readonly<Record<string, string>> | undefined
  },
) => boolean

/** Narrows by the indexed columns; labels are JSON and are judged by `IsInScope` afterwards. */
export const scopeCondition =
  (scope: StopScope) =>
  (
    where: ExpressionBuilder<Database, 'runwarden_run'>,
  ): ExpressionWrapper<Database, 'runwarden_run', SqlBool> =>
    where.and([
      ...(scope.runIds === undefined ? [] : [where('id', 'in', scope.runIds)]),
      ...(scope.session === undefined ? [] : [where('session', '=', scope.session)]),
      ...(scope.task === undefined ? [] : [where('task', '=', scope.task)]),
    ])

/** A heartbeat writes the progress of a run without a transition. */
export const changedCondition =
  (since: number) =>
  (
    where: ExpressionBuilder<Database, 'runwarden_run'>,
  ): ExpressionWrapper<Database, 'runwarden_run', SqlBool> =>
    where.or([where('updated_at', '>=', since), where('last_progress_at', '>=', since)])
