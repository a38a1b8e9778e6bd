/** A store whose failures are said in the library's terms: what a host calls may reject with `store-unavailable`, and with nothing of a driver's. */
import type { StorePort } from '../../actors/store.ports.js'
import { toStoreError } from './errors.js'

/** Answered without the database; and the one whose error is judged by who called (`isPassing`, `isInDoubt`). */
const AS_THEY_ARE: readonly (keyof StorePort)[] = ['isPassing', 'isInDoubt', 'hintFiled', 'commit']

export const inOurTerms = (store: StorePort): StorePort =>
  new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      const method = member.bind(target) as (...args: unknown[]) => unknown
      if (AS_THEY_ARE.some((one) => one === name)) return method
      return async (...args: unknown[]) => {
        try {
          return await method(...args)
        } catch (error) {
          throw toStoreError(error)
        }
      }
    },
  })
