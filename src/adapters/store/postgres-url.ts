/** A PostgreSQL server as it is named in `database`: recognised, and said without its credentials (L7). */

export const isPostgresUrl = (database: string): boolean => /^postgres(?:ql)?:\/\//i.test(database)

const ANYTHING_ELSE = 'postgres://…'

/** Host, port and database; nothing of the user, the password or the parameters. */
export const withoutCredentials = (url: string): string => {
  try {
    const { hostname, port, pathname, searchParams } = new URL(url)
    const host = searchParams.get('host') ?? hostname
    const at = searchParams.get('port') ?? port
    return `postgres://${host}${at === '' ? '' : `:${at}`}${pathname}`
  } catch {
    // What cannot be read cannot be cut where the credentials end.
    return ANYTHING_ELSE
  }
}
