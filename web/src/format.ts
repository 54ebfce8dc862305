// Values as text, with the rules of python/loadlens/present/numbers.py: three significant digits, four for rates
// from 1,000 /s on, one unit per block. tests/numbers.json holds what that module returns for the same values.

export interface Scale {
  readonly name: string;
  readonly factor: number; // base units in one of it
  readonly digits: number;
}

const scaleOf = (name: string, factor: number, digits = 3): Scale => ({ name, factor, digits });
const TIMES = [scaleOf("ns", 1e-9), scaleOf("µs", 1e-6), scaleOf("ms", 1e-3), scaleOf("s", 1)];
const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"].map((name, power) => scaleOf(name, 1024 ** power));
const RATES = [scaleOf("/s", 1, 4), scaleOf("M /s", 1e6, 4)];
const COUNTED = new Set(["requests", "connections", "users", "trials", "count"]);
const HUGE = 1e15;
const MINUS = "−";

type Value = number | null | undefined;

const isNumber = (value: Value): value is number => typeof value === "number" && Number.isFinite(value);

/** Return the unit that a block of values is shown in, by the median of their sizes. */
export function scale(unit: string, values: readonly Value[] = []): Scale {
  const sizes = values.filter(isNumber).map(Math.abs).filter((size) => size !== 0).sort((a, b) => a - b);
  const half = sizes.length >> 1;
  const upper = sizes[half];
  const middle = upper === undefined ? null : sizes.length % 2 ? upper : ((sizes[half - 1] ?? upper) + upper) / 2;
  switch (unit) {
    case "s":
      return fitting(TIMES, middle, 2);
    case "bytes":
      return fitting(BYTES, middle, 0);
    case "bytes/s":
    case "B/s": {
      const chosen = fitting(BYTES, middle, 0);
      return scaleOf(`${chosen.name}/s`, chosen.factor);
    }
    case "1/s":
    case "/s":
      return fitting(RATES, middle, 0);
    case "share":
      return scaleOf("%", 0.01);
    case "ratio":
    case "1":
    case "":
      return scaleOf("", 1);
    default:
      return scaleOf(unit, 1);
  }
}

function fitting(scales: readonly Scale[], size: number | null, otherwise: number): Scale {
  const first = scales[0];
  if (!first) throw new Error("no scale");
  if (size === null) return scales[otherwise] ?? first;
  return scales.reduce((best, each) => (size >= each.factor * (1 - 0.5 * 10 ** -each.digits) ? each : best), first);
}

/** Return a number on a scale, without its unit. */
export function value(number: number, on: Scale): string {
  const scaled = number / on.factor;
  const digits = on.digits <= 3 || Math.abs(scaled) >= 999.5 || on.factor > 1 ? on.digits : 3;
  return places(scaled, place(scaled, digits));
}

/** Return a value with the unit that fits it, or `not measured`. */
export function withUnit(number: Value, unit: string, on?: Scale): string {
  if (!isNumber(number)) return "not measured";
  const chosen = on ?? scale(unit, [number]);
  const text = COUNTED.has(unit) && Number.isInteger(number) ? count(number) : value(number, chosen);
  return `${text} ${chosen.name}`.trimEnd();
}

/** Return a count in full up to 999,999, then `1.46 M`. */
export function count(number: number): string {
  if (Math.abs(number) < 999_999.5) return grouped(number, 0);
  for (const [name, factor] of [["M", 1e6], ["G", 1e9], ["T", 1e12]] as const) {
    if (Math.abs(number) < 999.5 * factor) return `${places(number / factor, place(number / factor, 3))} ${name}`;
  }
  return number.toExponential(2);
}

/** Return a length of time for prose: `350 ms`, `12 s`, `57 min`, `2 h 5 min`, `3 d 4 h`. */
export function duration(seconds: number): string {
  if (seconds < 1) return withUnit(seconds, "s");
  if (seconds < 10 && !Number.isInteger(seconds)) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 120) return `${whole} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${Math.floor(hours / 24)} d`;
}

/** Return a time since the start as `7 s`, `12:05` or `1:02:05`, for axes and tables. */
export function clock(seconds: number): string {
  const sign = seconds < 0 ? MINUS : "";
  const whole = Math.round(Math.abs(seconds));
  const two = (part: number): string => String(part).padStart(2, "0");
  if (whole < 60) return `${sign}${whole} s`;
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours ? `${sign}${hours}:${two(minutes)}:${two(whole % 60)}` : `${sign}${minutes}:${two(whole % 60)}`;
}

/** Return a date and time in the reader's time zone, ISO style. */
export function when(unixSeconds: number): string {
  const date = new Date(unixSeconds * 1000);
  const two = (part: number): string => String(part).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Return one word or its plural with the number: `1 trial`, `3 trials`. */
export const several = (number: number, word: string): string => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

function place(number: number, digits: number): number {
  if (number === 0 || !Number.isFinite(number)) return 0;
  return Number(number.toExponential(digits - 1).split("e")[1]) - digits + 1;
}

function places(number: number, at: number): string {
  if (number === 0) return "0";
  if (Math.abs(number) >= HUGE) return number.toExponential(2);
  const rounded = at > 0 ? Math.sign(number) * Number(toEven(Math.abs(number) / 10 ** at, 0)) * 10 ** at : number;
  return grouped(rounded, Math.max(0, -at));
}

/** Round like Python: a tie goes to the even digit. `toFixed` rounds it up. */
function toEven(number: number, digits: number): string {
  const fixed = number.toFixed(digits);
  if (!/^50*$/.test(number.toFixed(Math.min(100, digits + 40)).split(".")[1]?.slice(digits) ?? "")) return fixed;
  return Number(fixed.at(-1)) % 2 ? (Number(fixed) - 10 ** -digits).toFixed(digits) : fixed;
}

function grouped(number: number, digits: number): string {
  const [whole = "", rest] = toEven(Math.abs(number), digits).split(".");
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
  return number < 0 && Number(number.toFixed(digits)) !== 0 ? MINUS + text : text;
}
