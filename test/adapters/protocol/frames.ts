/** Frames as agents write them. */

export const acpUpdate = (kind: string, more: object = {}) => ({
  jsonrpc: '2.0',
  method: 'session/update',
  params: { sessionId: 's', update: { sessionUpdate: kind, ...more } },
})
