// What the server sends, and the session. Times and sizes are in seconds and bytes; null is "not known".

export type State = "ok" | "caution" | "bad" | "unknown";
export type RunState = "running" | "finished" | "stopped" | "interrupted" | "damaged";
export type TrialState = "planned" | "running" | "complete" | "invalid" | "aborted" | "exploratory" | "unsealed";

/** A figure with its interval; `undecided` says why it has no value. */
export interface Figure {
  readonly value: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly undecided?: string | null;
  readonly marked?: boolean; // too few requests behind it
}

export interface RunSummary {
  readonly id: string;
  readonly name: string;
  readonly study: string;
  readonly question: string;
  readonly kind: string;
  readonly state: RunState;
  readonly created_s: number;
  readonly updated_s: number;
  readonly planned: number;
  readonly complete: number;
  readonly words: string;
}

export interface Runs {
  readonly title: string;
  readonly single: string | null;
  readonly runs: readonly RunSummary[];
}

export interface Case {
  readonly slug: string;
  readonly name: string;
  readonly experiment: string;
  readonly levels: Readonly<Record<string, string | number>>;
  readonly load: string;
  readonly purpose: string;
}

export interface TrialFigures {
  readonly throughput_per_s: Figure;
  readonly p50_s: Figure;
  readonly p95_s: Figure;
  readonly p99_s: Figure;
  readonly ok: number;
  readonly bad: number;
  readonly failed: number;
}

export interface Cell {
  readonly case: string;
  readonly block: number;
  readonly state: TrialState;
  readonly trial: string | null;
  readonly attempts: number;
  readonly reasons: readonly string[];
  readonly began_s: number | null;
  readonly ended_s: number | null;
  readonly figures: TrialFigures | null;
}

export interface Level {
  readonly case: string;
  readonly name: string;
  readonly load: number;
  readonly figures: readonly TrialFigures[]; // one per complete trial
}

export interface LogLine {
  readonly at_s: number;
  readonly event: string;
  readonly words: string;
  readonly case: string | null;
  readonly trial: string | null;
  readonly state?: State | null; // how it bears on the figures
  readonly since_t0_s?: number | null; // of the trial, where it takes effect at another moment than the event's
}

export type Action = "stop" | "resume" | "again";

export interface Run extends RunSummary {
  readonly path: string;
  readonly cases: readonly Case[];
  readonly blocks: number;
  readonly trials: readonly Cell[];
  readonly levels: readonly Level[];
  readonly provisional: readonly { readonly at_s: number; readonly words: string }[];
  readonly answer: readonly string[]; // its headline, then what follows
  readonly log: readonly LogLine[];
  readonly running: { readonly case: string; readonly trial: string; readonly phase: string } | null;
  readonly actions?: Readonly<Partial<Record<Action, boolean>>>;
  readonly why?: Readonly<Partial<Record<Action, string | null>>>;
  readonly has_report: boolean;
  readonly has_more?: boolean; // its answer is in the making
}

export type Numbers = (number | null)[];

export interface Totals {
  readonly due: number;
  readonly issued: number;
  readonly dropped: number;
  readonly waiting: number;
  readonly answered: number;
  readonly ok: number;
  readonly unexpected_status: number;
  readonly check_failed: number;
  readonly failed: number;
  readonly in_flight: number;
  readonly failed_by: Readonly<Record<string, number>>;
  readonly status: Readonly<Record<string, number>>;
  readonly law: string;
  readonly holds: boolean;
}

/** Columns of a stream, one value per point. */
export interface StreamColumns {
  due_per_s: Numbers;
  sent_per_s: Numbers;
  answered_per_s: Numbers;
  ok_per_s: Numbers;
  bad_per_s: Numbers;
  in_flight: Numbers;
  count: Numbers;
  p50_s: Numbers;
  p95_s: Numbers;
  p99_s: Numbers;
  failures: Record<string, Numbers>;
}

export interface Stream extends StreamColumns {
  readonly name: string;
  readonly role: string;
  readonly load: string;
  readonly changes?: "users" | "rate_per_s";
  readonly steps: readonly { readonly name: string; readonly request: string }[];
  totals: Totals;
}

export interface Points {
  start_s: number[];
  length_s: number[];
  phase: string[];
}

export interface Sample {
  readonly at_s: number | null;
  readonly step: string | null;
  readonly request: string | null;
  readonly status: number | null;
  readonly user: number | null;
  readonly connection: number | null;
  readonly words: string | null;
}

export interface Failure {
  readonly stream: string;
  readonly kind: string;
  readonly count: number;
  readonly first_s: number;
  readonly last_s: number;
  readonly samples: readonly Sample[];
}

export interface Generator {
  readonly threads: number;
  busy: Numbers;
  lag_p99_s: Numbers;
  stalled_s: Numbers;
}

export interface Series {
  readonly name: string;
  readonly what: string;
  readonly unit: string;
  readonly labels: Readonly<Record<string, string>>;
  values: Numbers;
}

export interface Topic {
  readonly id: string;
  readonly title: string;
  readonly series: Series[];
  readonly left_out: number;
}

export interface Service {
  start_s: number[];
  readonly length_s: number;
  readonly topics: Topic[];
}

/** A machine of a fleet: counts so far; rate, lateness and busy share of the last second, or of a load that has ended. */
export interface FleetNode {
  readonly name: string;
  readonly due: number;
  readonly ok: number;
  readonly bad: number;
  readonly per_s: number | null;
  readonly late_s: number | null;
  readonly busy: number | null;
}

export interface Trial {
  readonly case: string;
  readonly name: string;
  readonly trial: string;
  readonly block: number;
  readonly attempt: number;
  readonly state: TrialState;
  readonly reasons: readonly string[];
  readonly t0_s: number | null;
  readonly warmup_s: number;
  readonly duration_s: number | null;
  elapsed_s: number;
  phase: string;
  readonly notes: readonly string[];
  readonly points: Points;
  readonly streams: Stream[];
  readonly needs: Readonly<Record<"p50_s" | "p95_s" | "p99_s", number>>;
  failures: readonly Failure[];
  readonly generator: Generator;
  nodes: readonly FleetNode[]; // none where one machine makes the load
  readonly service: Service | null;
}

/** The new points of a running trial. */
export interface Update {
  readonly case: string;
  readonly trial: string;
  readonly elapsed_s: number;
  readonly phase: string;
  readonly points: Points;
  readonly streams: readonly (StreamColumns & { readonly totals: Totals })[];
  readonly failures: readonly Failure[];
  readonly generator: Pick<Generator, "busy" | "lag_p99_s" | "stalled_s">;
  readonly nodes: readonly FleetNode[];
  readonly service: { readonly start_s: number[]; readonly topics: readonly { readonly id: string; readonly series: readonly { readonly values: Numbers }[] }[] } | null;
}

export interface SlowRow {
  readonly at_s: number;
  readonly stream: string;
  readonly step: string;
  readonly request: string;
  readonly outcome: string;
  readonly status: number | null;
  readonly response_s: number | null;
  readonly service_s: number | null;
  readonly lag_s: number | null;
  readonly first_byte_s: number | null;
  readonly user: number | null;
  readonly connection: number | null;
  readonly connection_age_s: number | null;
  readonly is_first_on_connection: boolean;
  readonly stands_for: number;
  readonly trace_id?: string | null;
}

export interface Slow {
  readonly rows: readonly SlowRow[];
  readonly of: number;
  readonly words: string;
}

/** A figure as the record's own JSON has it. */
export interface RecordFigure {
  readonly point?: number;
  readonly low?: number | null;
  readonly high?: number | null;
  readonly reason?: string;
}

/** What `loadlens compare A B --json` prints, with one line of words per effect. */
export interface Comparison {
  readonly words: readonly string[];
  readonly comparison: {
    readonly verdict: "faster" | "slower" | "equivalent" | "undecided" | "failing";
    readonly sentence: string;
    readonly first: string;
    readonly second: string;
    readonly load: string;
    readonly effects: readonly {
      readonly case: string;
      readonly metric: string;
      readonly unit: string;
      readonly before: RecordFigure;
      readonly after: RecordFigure;
      readonly ratio: RecordFigure;
      readonly change: string;
    }[];
    readonly failures: readonly string[];
    readonly accounting: readonly string[];
    readonly cautions: readonly string[];
    readonly decides: string;
    readonly method: string;
  };
}

/** A request that the server refused, in its words. */
export class Refused extends Error {
  readonly status: number;
  readonly hint: string | null;

  constructor(status: number, words: string, hint: string | null) {
    super(words);
    this.status = status;
    this.hint = hint;
  }
}

let token = "";

/** Open a session with the token of the address bar, which is then removed from it, or with the cookie. */
export async function openSession(): Promise<void> {
  const fragment = location.hash.slice(1);
  if (fragment && !fragment.startsWith("/")) {
    history.replaceState(null, "", location.pathname + location.search);
    if (!document.getElementById(fragment)) { // #main is an anchor of the page
      token = fragment;
      await send("POST", "/api/session");
      return;
    }
  }
  token = (await get<{ token: string }>("/api/session")).token;
}

export const get = <T>(path: string): Promise<T> => send("GET", path) as Promise<T>;

export const post = (path: string): Promise<{ words?: string; id?: string | null }> =>
  send("POST", path) as Promise<{ words?: string; id?: string | null }>;

async function send(method: string, path: string): Promise<unknown> {
  const headers: Record<string, string> = method === "POST" ? { "X-Loadlens-Token": token } : {};
  let response: Response;
  try {
    response = await fetch(path, { method, headers, cache: "no-store" });
  } catch {
    throw new Refused(0, "the server does not answer", "it ends with its run; start it again with: loadlens ui");
  }
  if (response.status === 204) return {};
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok) return answer;
  const { error, hint } = (answer ?? {}) as { error?: string; hint?: string | null };
  throw new Refused(response.status, error ?? `the server answered ${response.status}`, hint ?? null);
}

/** Return the path of a run, of one of its trials, or of what belongs to one. */
export const pathOf = (...parts: readonly string[]): string => `/api/runs/${parts.map(encodeURIComponent).join("/")}`;

export const trialPath = (run: string, slug: string, trial: string, ...more: readonly string[]): string =>
  pathOf(run, "trials", slug, trial, ...more);
