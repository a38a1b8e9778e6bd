/**
 * A store as the engine and the host see it: what fails says so in the library's terms (`store-unavailable`, and nothing of a driver's),
 * and what was asked over a connection that broke is asked again over another.
 */
import type { StorePort } from '../../actors/store.ports.js'
import { isConnectionLost, toStoreError } from './errors.js'

/** As many as a pool may have stale connections. */
const ASK_AGAIN_MAX = 4

/** Answered without the database; and the one whose error is judged, and repeated, by who called (group-commit.ts). */
const AS_THEY_ARE: readonly (keyof StorePort)[] = ['isPassing', 'isInDoubt', 'hintFiled', 'commit']

/** Asked a second time these would give another answer, when the first was taken and its answer lost. */
const ASKED_ONCE: readonly (keyof StorePort)[] = ['takeOver', 'close']

const includes = (names: readonly string[], name: string | symbol): boolean =>
  names.some((one) => one === name)

export const inOurTerms = (store: StorePort): StorePort =>
  new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      const method = member.bind(target) as (...args: unknown[]) => unknown
      if (includes(AS_THEY_ARE, name)) return method
      return async (...args: unknown[]) => {
        for (let again = includes(ASKED_ONCE, name) ? 0 : ASK_AGAIN_MAX; ; again -= 1) {
          try {
            return await method(...args)
          } catch (error) {
            if (again === 0 || !isConnectionLost(error)) throw toStoreError(error)
          }
        }
      }
    },
  })
