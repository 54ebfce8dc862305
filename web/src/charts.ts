// Charts over time that zoom and read together. Each has its latest values as text and a table beneath.

import uPlot from "uplot";

import { isBeyond, nearest, within, type Span } from "./axis.ts";
import { h, put, setText } from "./dom.ts";
import { clock, scale, value, withUnit, type Scale } from "./format.ts";
import { merged, MOST_POINTS, type Column, type Merge } from "./series.ts";

export interface Line {
  readonly name: string;
  readonly values: Column;
  readonly slot?: number; // 1 to 6 name a thing, 7 is the rest; by position if left out
  readonly dashed?: boolean;
  readonly merge?: Merge; // of moments too close to be drawn apart: the highest if left out, so that no peak is lost
}

/** What a chart shows: lines of one unit over one time axis, in seconds since the start. */
export interface Picture {
  readonly title: string;
  readonly unit: string;
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly isLog?: boolean;
  readonly leftOut?: readonly number[]; // times whose values too few requests carry
  readonly note?: string;
  readonly drawn?: number; // lines that are drawn, the first ones; the table has all. Everything if left out
}

/** Something that happened, drawn as a line through every chart. */
export interface Mark {
  readonly at: number;
  readonly text: string;
  readonly isBad?: boolean;
}

/** A stretch that counts less, such as a warm-up: shaded in every chart. */
export interface Shade {
  readonly from: number;
  readonly to: number;
}

const HEIGHT = 170;
const ROWS = 10; // of the table beneath a chart: the latest moments
const BINARY = Array.from({ length: 51 }, (_, power) => 2 ** power);

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** All charts of a screen: one span of time, one cursor, one set of marks. */
export class Charts {
  readonly element = h("div", { class: "charts" });
  readonly tools = h("div", { class: "chart-tools", role: "group", "aria-label": "Time axis of all charts" });
  #charts = new Map<string, Chart>();
  #span: Span | null = null; // null: follow everything
  #last: number | null = null; // seconds to follow at the end; null: everything
  #cursor: number | null = null;
  #marks: readonly Mark[] = [];
  #shades: readonly Shade[] = [];
  #whole: Span = { min: 0, max: 1 };
  #slider = h("input", { type: "range", min: 0, max: 1000, value: 1000, "aria-label": "Moment that the figures are read at" });
  #moment = h("span", {}); // no output element: screen readers would read it out every second
  #follow: HTMLButtonElement[] = [];
  #observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      for (const chart of this.#charts.values()) {
        if (chart.element === entry.target) chart.see(entry.isIntersecting);
      }
    }
  });

  constructor() {
    const button = (text: string, act: () => void, name = text): HTMLButtonElement =>
      h("button", { type: "button", click: act, "aria-label": name }, text);
    this.#follow = [
      button("all", () => { this.follow(null); }, "Show all of the time"),
      button("10 min", () => { this.follow(600); }, "Show the last 10 min"),
      button("1 min", () => { this.follow(60); }, "Show the last 1 min"),
    ];
    this.#slider.addEventListener("input", () => {
      const { min, max } = this.#shown();
      const at = Number(this.#slider.value) / 1000;
      this.read(at >= 1 ? null : min + (max - min) * at);
    });
    put(
      this.tools,
      ...this.#follow,
      button("+", () => { this.#zoomBy(0.5); }, "Zoom in"),
      button("−", () => { this.#zoomBy(2); }, "Zoom out"),
      button("◂", () => { this.#move(-0.5); }, "Earlier"),
      button("▸", () => { this.#move(0.5); }, "Later"),
      h("label", { class: "moment" }, this.#slider, this.#moment),
    );
    this.#tell();
  }

  /** Show these charts, in this order; the ones that are there already keep their state. */
  show(pictures: ReadonlyMap<string, Picture>, marks: readonly Mark[], shades: readonly Shade[], end: number): void {
    this.#marks = marks;
    this.#shades = shades;
    const starts = [...pictures.values()].flatMap((picture) => picture.times.slice(0, 1));
    this.#whole = { min: Math.min(0, ...starts), max: Math.max(end, 1) };
    if (this.#span && isBeyond(this.#span, this.#whole)) this.#span = null;
    if (this.#cursor !== null && this.#cursor > this.#whole.max) this.read(null);
    for (const [id, chart] of this.#charts) {
      if (pictures.has(id)) continue;
      this.#observer.unobserve(chart.element);
      chart.destroy();
      this.#charts.delete(id);
    }
    let previous: Element | null = null;
    for (const [id, picture] of pictures) {
      let chart = this.#charts.get(id);
      if (!chart) {
        chart = new Chart(this, id, picture);
        this.#charts.set(id, chart);
        this.#observer.observe(chart.element);
      }
      const place: Element | null = previous ? previous.nextElementSibling : this.element.firstElementChild;
      if (place !== chart.element) this.element.insertBefore(chart.element, place);
      previous = chart.element;
      chart.show(picture);
    }
    this.#apply();
  }

  /** Seconds that are shown. */
  get width(): number {
    const { min, max } = this.#shown();
    return max - min;
  }

  /** Follow the last seconds of the run, or all of it. */
  follow(seconds: number | null): void {
    this.#span = null;
    this.#last = seconds;
    this.#apply();
  }

  /** Zoom every chart to a span of time. */
  zoom(span: Span): void {
    const width = Math.max(span.max - span.min, 2);
    const min = Math.min(Math.max(span.min, this.#whole.min), Math.max(this.#whole.max - width, this.#whole.min));
    this.#span = { min, max: Math.min(min + width, this.#whole.max) };
    this.#apply();
  }

  /** Read every chart at a moment; null: at the latest. */
  read(at: number | null): void {
    if (at === this.#cursor) return;
    this.#cursor = at;
    for (const chart of this.#charts.values()) chart.read(at);
    this.#tell();
  }

  /** Draw again with the colours of the theme. */
  recolour(): void {
    for (const chart of this.#charts.values()) chart.recolour();
  }

  destroy(): void {
    this.#observer.disconnect();
    for (const chart of this.#charts.values()) chart.destroy();
    this.#charts.clear();
  }

  get marks(): readonly Mark[] {
    return this.#marks;
  }

  get shades(): readonly Shade[] {
    return this.#shades;
  }

  #shown(): Span {
    const { min, max } = this.#whole;
    return this.#span ?? { min: this.#last === null ? min : Math.max(min, max - this.#last), max };
  }

  #zoomBy(factor: number): void {
    const { min, max } = this.#shown();
    const centre = this.#cursor ?? (min + max) / 2;
    const half = ((max - min) / 2) * factor;
    if (2 * half >= this.#whole.max - this.#whole.min) this.follow(null);
    else this.zoom({ min: centre - half, max: centre + half });
  }

  #move(share: number): void {
    const { min, max } = this.#shown();
    const by = (max - min) * share;
    this.zoom({ min: min + by, max: max + by });
  }

  #apply(): void {
    const span = this.#shown();
    for (const chart of this.#charts.values()) chart.zoom(span);
    this.#tell();
  }

  #tell(): void {
    const { min, max } = this.#shown();
    const chosen = this.#span ? -1 : [null, 600, 60].indexOf(this.#last);
    this.#follow.forEach((button, i) => { button.setAttribute("aria-pressed", String(i === chosen)); });
    const at = this.#cursor;
    setText(this.#moment, `${at === null ? "latest values" : `at ${clock(at)}`} · ${clock(min)} to ${clock(max)}`);
    this.#slider.value = String(at === null ? 1000 : Math.round(((at - min) / (max - min)) * 1000));
    this.#slider.setAttribute("aria-valuetext", at === null ? "latest" : clock(at));
  }
}

class Chart {
  readonly element: HTMLElement;
  #all: Charts;
  #picture: Picture;
  #plot: uPlot | null = null;
  #host = h("div", { class: "plot", role: "img" });
  #legend = h("ul", { class: "legend" });
  #note = h("p", { class: "note" });
  #title = h("h3", {});
  #table = h("div", { class: "scroll" });
  #fold: HTMLDetailsElement;
  #span: Span = { min: 0, max: 1 };
  #seen = false;
  #stale = true;
  #at: number | null = null;
  #unit: Scale;
  #resize = new ResizeObserver(() => { this.#fit(); });

  constructor(all: Charts, id: string, picture: Picture) {
    this.#all = all;
    this.#picture = picture;
    this.#unit = scale(picture.unit);
    this.#fold = h("details", { toggle: () => { this.#tabulate(); } }, h("summary", {}, "values as a table"), this.#table);
    this.element = h("figure", { class: "chart", id: `chart-${id}` }, this.#title, this.#host, this.#legend, this.#note, this.#fold);
    this.#resize.observe(this.#host);
  }

  show(picture: Picture): void {
    const before = this.#lines;
    this.#picture = picture;
    const lines = this.#lines;
    if (before.length !== lines.length || before.some((line, i) => line.name !== lines[i]?.name)) this.#drop();
    this.#unit = scale(picture.unit, lines.flatMap(({ values }) => sampled(values)));
    setText(this.#title, `${picture.title}${this.#unit.name ? `, ${this.#unit.name}` : ""}${picture.isLog ? " (log)" : ""}`);
    setText(this.#note, picture.note ?? "");
    this.#note.hidden = !picture.note;
    this.#stale = true;
    this.#tell();
    if (this.#fold.open) this.#tabulate();
  }

  get #lines(): readonly Line[] {
    return this.#picture.lines.slice(0, this.#picture.drawn);
  }

  see(seen: boolean): void {
    this.#seen = seen;
    this.#draw();
  }

  zoom(span: Span): void {
    this.#stale ||= span.min !== this.#span.min || span.max !== this.#span.max;
    this.#span = span;
    this.#draw();
  }

  read(at: number | null): void {
    this.#at = at;
    this.#tell();
    if (!this.#plot) return;
    const left = at === null ? -10 : this.#plot.valToPos(at, "x");
    this.#plot.setCursor({ left, top: left < 0 ? -10 : 0 }, false);
  }

  recolour(): void {
    this.#drop();
    this.#draw();
  }

  destroy(): void {
    this.#resize.disconnect();
    this.#drop();
    this.element.remove();
  }

  #drop(): void {
    this.#plot?.destroy();
    this.#plot = null;
    this.#stale = true;
  }

  #fit(): void {
    const width = this.#host.clientWidth;
    if (this.#plot && width && width !== this.#plot.width) this.#plot.setSize({ width, height: HEIGHT });
    else this.#draw();
  }

  /** Draw if somebody can see it; at most MOST_POINTS in the span that is shown. */
  #draw(): void {
    if (!this.#seen || !this.#stale || document.hidden || !this.#host.clientWidth) return;
    this.#stale = false;
    const { times } = this.#picture;
    const [first, last] = within(times, this.#span);
    const columns = [{ values: times, merge: "last" as const }, ...this.#lines].map(({ values, merge }) => ({ values: values.slice(first, last), merge: merge ?? "highest" as const }));
    // One point per pixel: more look the same, and each line that is drawn is memory until the next collection.
    const data = merged(columns, Math.min(MOST_POINTS, Math.max(200, this.#host.clientWidth))) as uPlot.AlignedData;
    this.#plot ??= new uPlot(this.#options(), data, this.#host);
    this.#plot.batch(() => {
      this.#plot?.setData(data, false);
      this.#plot?.setScale("x", this.#span);
    });
  }

  #options(): uPlot.Options {
    const ink = (): string => colour("ink-2");
    const axis = { stroke: ink, font: "11px system-ui, sans-serif", ticks: { show: false }, grid: { stroke: (): string => colour("grid"), width: 1 } };
    const isLog = this.#picture.isLog ?? false;
    return {
      width: this.#host.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      padding: [8, 18, 0, 0], // the last label of the axis of time ends beyond it
      scales: {
        x: { time: false },
        // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- uPlot declares its enum without a value
        y: isLog ? { distr: 3, range: logRange } : { range: (_, __, high) => [0, high > 0 ? high * 1.08 : 1] },
      },
      axes: [
        { ...axis, values: (_, splits) => splits.map(clock), space: 64, size: 28, incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400] },
        {
          ...axis,
          values: (_, splits) => splits.map((each) => (isLog && !isNamed(each, splits) ? null : tick(each, this.#unit))),
          space: isLog ? 16 : 32,
          size: 52,
          ...(isLog ? { filter: (_: uPlot, splits: number[]) => splits } : {}),
          ...(this.#picture.unit.startsWith("bytes") ? { incrs: BINARY } : {}),
        },
      ],
      series: [
        {},
        ...this.#lines.map((line, i) => ({
          label: line.name,
          stroke: (): string => colour(slotOf(line, i)),
          width: 1.5,
          ...(line.dashed ? { dash: [5, 3] } : {}),
          points: { size: 4 },
        })),
      ],
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false },
        points: { size: 6 },
      },
      hooks: {
        drawClear: [(plot) => { this.#under(plot); }],
        draw: [(plot) => { this.#over(plot); }],
        setCursor: [
          (plot) => {
            const left = plot.cursor.left ?? -1;
            this.#all.read(left < 0 ? null : plot.posToVal(left, "x"));
          },
        ],
        setSelect: [
          (plot) => {
            if (plot.select.width < 4) return;
            this.#all.zoom({ min: plot.posToVal(plot.select.left, "x"), max: plot.posToVal(plot.select.left + plot.select.width, "x") });
            plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          },
        ],
      },
    };
  }

  #under(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = colour("panel");
    for (const { from, to } of this.#all.shades) {
      const left = Math.max(bbox.left, plot.valToPos(from, "x", true));
      const right = Math.min(bbox.left + bbox.width, plot.valToPos(to, "x", true));
      if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    ctx.restore();
  }

  #over(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const pixel = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height + 4 * pixel);
    ctx.clip();
    ctx.setLineDash([2 * pixel, 3 * pixel]);
    ctx.lineWidth = pixel;
    for (const mark of this.#all.marks) {
      const x = Math.round(plot.valToPos(mark.at, "x", true));
      ctx.strokeStyle = colour(mark.isBad ? "bad" : "ink-2");
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    // Moments left out: hollow rings on the axis, where a value would be read as zero if it were drawn.
    ctx.setLineDash([]);
    ctx.strokeStyle = colour("ink-2");
    for (const at of this.#picture.leftOut ?? []) {
      ctx.beginPath();
      ctx.arc(plot.valToPos(at, "x", true), bbox.top + bbox.height - 3 * pixel, 2 * pixel, 0, 2 * Math.PI);
      ctx.stroke();
    }
    ctx.restore();
  }

  /** Say the values at the cursor, or the latest. */
  #tell(): void {
    const { title, times, unit } = this.#picture;
    const lines = this.#lines;
    const row = this.#at === null ? null : nearest(times, this.#at);
    const texts = lines.map((line) => text(row === null ? latest(line.values) : line.values[row], unit, this.#unit));
    while (this.#legend.children.length > lines.length) this.#legend.lastElementChild?.remove();
    lines.forEach((line, i) => {
      let item = this.#legend.children[i];
      if (!item) {
        item = h("li", {}, h("span", { class: "swatch" }), h("span", { class: "name" }), h("b", {}));
        this.#legend.append(item);
      }
      const [swatch, name, figure] = [...item.children];
      if (!swatch || !name || !figure) return;
      swatch.className = `swatch ${slotOf(line, i)}${line.dashed ? " dashed" : ""}`;
      setText(name, line.name);
      setText(figure, texts[i] ?? "");
    });
    const label = `${title}: ${lines.map((line, i) => `${line.name} ${texts[i] ?? ""}`).join(", ") || "nothing yet"}`;
    if (this.#host.getAttribute("aria-label") !== label) this.#host.setAttribute("aria-label", label);
  }

  #tabulate(): void {
    if (!this.#fold.open) return;
    const { times, lines, title, unit } = this.#picture;
    const [first, last] = within(times, this.#span);
    const rows = times.slice(first, last).map((at, i) => ({ at, row: first + i })).slice(-ROWS).reverse();
    this.#table.replaceChildren(
      h(
        "table",
        {},
        h("caption", { class: "said" }, `${title}, latest values`),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "time"), ...lines.map((line) => h("th", { scope: "col" }, line.name)))),
        h(
          "tbody",
          {},
          ...rows.map(({ at, row }) =>
            h("tr", {}, h("th", { scope: "row" }, clock(at)), ...lines.map((line) => h("td", {}, text(line.values[row], unit, this.#unit)))),
          ),
        ),
      ),
    );
    this.#table.tabIndex = 0;
  }
}

const slotOf = (line: Line, position: number): string => `slot-${line.slot ?? Math.min(position + 1, 7)}`;

const text = (number: number | null | undefined, unit: string, on: Scale): string =>
  number === null || number === undefined ? "none" : withUnit(number, unit, on);

function latest(values: Column): number | null | undefined {
  return values.at(-1) ?? values.at(-2);
}

function logRange(_: uPlot, low: number, high: number): [number, number] {
  if (!(low > 0) || !(high > 0)) return [0.001, 0.01];
  return [roundLog(low / 1.05, Math.floor), roundLog(high * 1.05, Math.ceil)];
}

/** Round to 1, 2 or 5 times a power of ten, which are the numbers that a log axis names. */
function roundLog(number: number, way: (number: number) => number): number {
  const decade = 10 ** Math.floor(Math.log10(number));
  const steps = [1, 2, 5, 10];
  const ratio = number / decade;
  return decade * (way === Math.floor ? (steps.findLast((step) => step <= ratio) ?? 1) : (steps.find((step) => step >= ratio) ?? 10));
}

/** Return whether a log axis names a value: 1, 2 and 5 of each decade, or of many decades only the 1. */
function isNamed(number: number, splits: readonly number[]): boolean {
  const [low = 1, high = 1] = [splits[0], splits.at(-1)];
  const digit = Number((number / 10 ** Math.floor(Math.log10(number) + 1e-9)).toPrecision(6));
  return (high / low > 150 ? [1] : [1, 2, 5]).includes(digit);
}

/** Return up to a hundred values, evenly spaced: enough to choose a unit by. */
function sampled(values: Column): (number | null)[] {
  const step = Math.ceil(values.length / 100);
  const out: (number | null)[] = [];
  for (let row = 0; row < values.length; row += step) out.push(values[row] ?? null);
  return out;
}

const tick = (number: number, on: Scale): string => (number === 0 ? "0" : value(number, on).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, ""));
