/** Looking into a parsed frame whose shape nobody vouches for. */

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** The value at a path of keys joined by dots; undefined where the path leads nowhere. */
export const valueAt = (frame: unknown, path: string): unknown => {
  let value = frame
  for (const key of path.split('.')) {
    if (!isRecord(value) || !Object.hasOwn(value, key)) return undefined
    value = value[key]
  }
  return value
}

export const textAt = (frame: unknown, path: string): string | undefined => {
  const value = valueAt(frame, path)
  return typeof value === 'string' ? value : undefined
}

export const numberAt = (frame: unknown, path: string): number | undefined => {
  const value = valueAt(frame, path)
  return typeof value === 'number' ? value : undefined
}

export const listAt = (frame: unknown, path: string): readonly unknown[] => {
  const value = valueAt(frame, path)
  return Array.isArray(value) ? value : []
}

/** Never throws: what is no JSON is an empty frame. */
export const parseFrame = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    // A line that was cut, or garbage that began like a frame: its type is all there is.
    return {}
  }
}
