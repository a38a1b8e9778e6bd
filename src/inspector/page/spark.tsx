/** Progress over the last two minutes: a bar for each interval. */

const WIDTH = 72
const HEIGHT = 16
const INTERVALS = 24
const BAR = WIDTH / INTERVALS

export const Spark = ({ pulse }: { readonly pulse: readonly number[] }) => {
  const most = Math.max(4, ...pulse)
  const path = pulse
    .map((count, index) => {
      if (count === 0) return ''
      const height = Math.max(2, (HEIGHT * count) / most)
      const x = WIDTH - (pulse.length - index) * BAR
      return `M${x.toFixed(1)} ${String(HEIGHT)}v${(-height).toFixed(1)}h${(BAR - 1).toFixed(1)}v${height.toFixed(1)}z`
    })
    .join('')
  const beats = pulse.reduce((sum, count) => sum + count, 0)
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${String(WIDTH)} ${String(HEIGHT)}`}
      role="img"
      aria-label={`${String(beats)} signs of progress lately`}
    >
      <path class="spark-ground" d={`M0 ${String(HEIGHT - 0.5)}h${String(WIDTH)}`} />
      <path class="spark-bars" d={path} />
    </svg>
  )
}
