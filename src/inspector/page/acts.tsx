/** The acts on a run: each says what will happen, asks, and shows the receipt as it fills. */
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ACTS } from '../wire.js'
import type { Act, ActAnswer } from '../wire.js'
import { obstacleTo, wordsFor } from './act-words.js'
import { hello } from './fleet-state.js'
import { duration } from './format.js'
import { sendAct, serverNow } from './net.js'
import { Answer } from './panels.js'
import { Regions } from './regions.js'
import { goLive } from './scrubber.js'
import { run } from './run-state.js'
import { toneOf } from './tones.js'

interface Pending {
  readonly act: Act
  readonly runId: string
  /** Null before it is confirmed. */
  readonly sentAt: number | null
  readonly answer: ActAnswer | null
}

const pending = signal<Pending | null>(null)

const TITLES: Readonly<Record<Act, string>> = {
  pause: 'Pause',
  resume: 'Resume',
  interrupt: 'Interrupt',
  cancel: 'Cancel',
  force: 'Force',
}

const confirm = async (runId: string, act: Act, reason: string): Promise<void> => {
  pending.value = { act, runId, sentAt: serverNow(), answer: null }
  goLive()
  const answer = await sendAct({ run: runId, act, reason })
  const now = pending.peek()
  // The dialog may be closed by now, or about another act.
  if (now?.runId === runId && now.act === act) pending.value = { ...now, answer }
}

const Receipt = ({ sentAt, answer }: { readonly sentAt: number; readonly answer: ActAnswer | null }) => {
  const orders = (run.value?.orders ?? []).filter(
    ({ requestedAt, by }) => by === 'inspector' && requestedAt >= sentAt - 2_000,
  )
  const order = orders.at(-1)
  if (answer !== null && 'error' in answer)
    return (
      <p class="receipt-error" role="alert">
        <b>{answer.error.code}</b>: {answer.error.message}
      </p>
    )
  const receipt = answer?.receipt
  return (
    <div class="receipt" role="status">
      <p class="receipt-status">
        <span class={`badge big tone-${receipt === undefined ? 'stopping' : toneOf(receipt.status)}`}>
          {receipt?.status ?? 'requested'}
        </span>
      </p>
      {receipt === undefined ? <Regions /> : null}
      {receipt === undefined && order !== undefined ? (
        <p>
          <Answer order={order} />
        </p>
      ) : null}
      <ul class="receipt-lines">
        {receipt?.runs.map((line) => (
          <li key={line.runId}>
            <b>{line.runId}</b> {line.status}
            {line.confirmedAt === undefined ? '' : ` in ${duration(line.confirmedAt - line.requestedAt)}`}
            {line.evidence === undefined ? '' : `, by ${line.evidence.map(({ kind }) => kind).join(', ')}`}
            {(line.survivors ?? [])
              .map(({ name, pid }) => ` · still alive: ${name} (${String(pid)})`)
              .join('')}
            {line.error === undefined ? '' : ` · ${line.error}`}
          </li>
        ))}
      </ul>
      {receipt?.lookup === 'incomplete' ? (
        <p>The store could not be read whole: runs may be missing here.</p>
      ) : null}
    </div>
  )
}

const close = (): void => {
  pending.value = null
}

const Question = ({ act, runId }: Pick<Pending, 'act' | 'runId'>) => {
  const reason = useRef<HTMLInputElement>(null)
  const update = run.value
  if (update === null) return null
  const words = wordsFor(act, update.run, update.policy)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void confirm(runId, act, reason.current?.value ?? '')
      }}
    >
      <h2 id="act-title">{words.title}</h2>
      <p class="act-run">
        <b>{runId}</b> <span class="quiet">{update.run.program}</span>
      </p>
      <ol class="will">
        {words.will.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ol>
      <label>
        <span>
          Reason <span class="quiet">(it is recorded)</span>
        </span>
        <input ref={reason} type="text" maxLength={500} autocomplete="off" />
      </label>
      <div class="act-buttons">
        <button type="button" onClick={close}>
          Leave it
        </button>
        <button type="submit" class={words.isHard ? 'hard' : 'primary'}>
          {words.button}
        </button>
      </div>
    </form>
  )
}

export const ActDialog = () => {
  const dialog = useRef<HTMLDialogElement>(null)
  const now = pending.value
  const isOpen = now !== null
  useEffect(() => {
    if (isOpen) dialog.current?.showModal()
    else dialog.current?.close()
  }, [isOpen])
  return (
    <dialog ref={dialog} aria-labelledby="act-title" onClose={close} class="act-dialog">
      {now === null ? null : now.sentAt === null ? (
        <Question act={now.act} runId={now.runId} />
      ) : (
        <div>
          <h2 id="act-title">
            {TITLES[now.act]}: {now.runId}
          </h2>
          <Receipt sentAt={now.sentAt} answer={now.answer} />
          <div class="act-buttons">
            <button type="button" class="primary" onClick={close}>
              {now.answer === null ? 'Go on in the background' : 'Close'}
            </button>
          </div>
        </div>
      )}
    </dialog>
  )
}

export const Acts = ({ runId }: { readonly runId: string }) => {
  const update = run.value
  if (hello.value?.isReadOnly !== false) return <span class="badge tone-idle">read-only</span>
  if (update === null) return null
  const isFrozen = update.run.process === 'frozen'
  const offered = ACTS.filter((act) => act !== (isFrozen ? 'pause' : 'resume'))
  return (
    <div class="acts" role="group" aria-label="Acts">
      {offered.map((act) => {
        const obstacle = obstacleTo(act, update.run, update.policy)
        return (
          <button
            key={act}
            type="button"
            class={act === 'force' ? 'act hard' : 'act'}
            disabled={obstacle !== null}
            title={obstacle === null ? undefined : `Not now: ${obstacle}`}
            onClick={() => {
              pending.value = { act, runId, sentAt: null, answer: null }
            }}
          >
            {TITLES[act]}
          </button>
        )
      })}
    </div>
  )
}
