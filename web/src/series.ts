// Columns of numbers over time, bounded: what is drawn does not grow with the length of a run.

/** null: no value then, a gap; undefined: no row of its own, which a line passes over. */
export type Column = readonly (number | null | undefined)[];

/** How neighbours become one: rates have a mean, percentiles and levels have none, so the highest is kept. */
export type Merge = "mean" | "highest" | "last";

export const MOST_POINTS = 2000; // per line that is drawn

/** Return columns of at most `most` rows, neighbours merged; the last row stays whole. */
export function merged(columns: readonly { readonly values: Column; readonly merge: Merge }[], most: number): Column[] {
  const rows = columns[0]?.values.length ?? 0;
  const step = Math.ceil(rows / most);
  if (step <= 1) return columns.map(({ values }) => values);
  return columns.map(({ values, merge }) => {
    const out: (number | null | undefined)[] = [];
    for (let end = rows % step || step; end <= rows; end += step) out.push(oneOf(values, Math.max(0, end - step), end, merge));
    return out;
  });
}

/** Join the rows of a range; it copies nothing, since a live page does this for every line once per second. */
function oneOf(values: Column, from: number, to: number, merge: Merge): number | null | undefined {
  if (merge === "last") return values[to - 1];
  let [sum, highest, known] = [0, -Infinity, 0];
  for (let row = from; row < to; row += 1) {
    const value = values[row];
    if (typeof value !== "number") continue;
    sum += value;
    highest = Math.max(highest, value);
    known += 1;
  }
  if (known === 0) return values[to - 1];
  return merge === "mean" ? sum / known : highest;
}
