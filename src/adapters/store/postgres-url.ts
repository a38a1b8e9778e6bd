/** A PostgreSQL server as it is named in `database`: recognised, and said without its credentials (L7). */

export const isPostgresUrl = (database: string): boolean => /^postgres(?:ql)?:\/\//i.test(database)

const UNREADABLE = 'postgres://…'

/** Host, port and database; nothing of the user, the password or the parameters. */
export const withoutCredentials = (url: string): string => {
  const bare = url.replace(/\/\/[^/?#]*@/, '//')
  // A password with a character that belongs escaped: nobody knows where it ends.
  if (bare.includes('@')) return UNREADABLE
  try {
    const { hostname, port, pathname, searchParams } = new URL(bare)
    const at = searchParams.get('port') ?? port
    return `postgres://${searchParams.get('host') ?? hostname}${at === '' ? '' : `:${at}`}${pathname}`
  } catch {
    return UNREADABLE
  }
}
