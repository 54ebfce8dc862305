// The axis of time that all charts of a screen share. No page here.

export interface Span {
  readonly min: number;
  readonly max: number;
}

/** Return the range of rows within a span, with one more on either side so that lines reach the edge. */
export function within(times: readonly number[], span: Span): [number, number] {
  const first = times.findIndex((at) => at >= span.min);
  if (first < 0) return [Math.max(0, times.length - 1), times.length];
  const after = times.findIndex((at) => at > span.max);
  return [Math.max(0, first - 1), after < 0 ? times.length : after + 1];
}

/** True if most of a span lies past the end: it was chosen in a longer trial. */
export const isBeyond = (span: Span, whole: Span): boolean => (span.min + span.max) / 2 > whole.max;

/** Return the row whose time is nearest. */
export function nearest(times: readonly number[], at: number): number {
  let [low, high] = [0, times.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) <= at) low = middle;
    else high = middle;
  }
  return Math.abs((times[low] ?? 0) - at) <= Math.abs((times[high] ?? 0) - at) ? low : high;
}
