/** Signs for buttons: drawn, since not every font has them. */

const PATHS = {
  first: 'M4 3v10M13 3L6.5 8L13 13z',
  back: 'M11 3L4.5 8L11 13z',
  play: 'M5 3L12 8L5 13z',
  stop: 'M4.5 3.5h7v9h-7z',
  forth: 'M5 3L11.5 8L5 13z',
  smaller: 'M3 8h10',
  larger: 'M3 8h10M8 3v10',
  fit: 'M2 8h12M5 4.5L1.5 8L5 11.5M11 4.5L14.5 8L11 11.5',
  left: 'M13 8H3M7 4L3 8l4 4',
} as const

export const Icon = ({ name }: { readonly name: keyof typeof PATHS }) => (
  <svg class="sign" viewBox="0 0 16 16" aria-hidden="true">
    <path d={PATHS[name]} />
  </svg>
)
