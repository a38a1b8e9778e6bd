/** What the writers and the readers of a log agree on. */

/** The last line of a log's last index: no more will come. */
export const LOG_END = 'end'
