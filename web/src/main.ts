// The page: opens the session, then shows the screen that the address names.
//
//   #/                    all runs
//   #/run/ID              a run: the running trial, or the last complete one
//   #/run/ID/CASE/TRIAL   that trial of it
//   #/compare/A/B         two runs

import { get, openSession, Refused, type Runs } from "./api.ts";
import { h, put, say } from "./dom.ts";
import { compareScreen } from "./screens/compare.ts";
import { listScreen } from "./screens/list.ts";
import { runScreen } from "./screens/run.ts";
import { badge, fault, type Bar, type Screen } from "./screens/screen.ts";
import { isDark, switchTheme } from "./theme.ts";

const byId = (id: string): HTMLElement => document.getElementById(id) ?? document.body;
const main = byId("main");
const header = byId("bar");
const where = h("span", { class: "where" });
const state = h("span", { class: "state" });
const theme = h("button", { type: "button", class: "quiet" });
let screen: Screen | null = null;
let single: string | null = null;

const bar: Bar = {
  where(text, known) {
    if (where.textContent !== text) where.textContent = text;
    const words = known?.words ?? "";
    if (state.dataset.words === words) return;
    state.dataset.words = words;
    state.replaceChildren(...(known ? [badge(known)] : []));
  },
};

function nameTheme(): void {
  theme.textContent = isDark() ? "light colours" : "dark colours";
}

function recolour(): void {
  nameTheme();
  screen?.recolour?.();
}

theme.addEventListener("click", () => {
  switchTheme();
  say(`${isDark() ? "dark" : "light"} colours`);
  recolour();
});
// Followed by the browser, the link would put #main into the address, which names the screen.
document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);

function show(): void {
  const [kind = "", ...parts] = location.hash.replace(/^#?\/?/, "").split("/").map(decode);
  screen?.destroy?.();
  state.replaceChildren();
  state.dataset.words = "";
  document.title = "Loadlens";
  const [first, second, third] = parts;
  if (kind === "run" && first) screen = runScreen(bar, first, second && third ? { slug: second, trial: third } : null);
  else if (kind === "compare" && first && second) screen = compareScreen(bar, first, second);
  else if (single !== null && kind === "") screen = runScreen(bar, single, null);
  else screen = listScreen(bar);
  main.replaceChildren(screen.element);
  scrollTo(0, 0);
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function begin(): Promise<void> {
  nameTheme();
  put(header, h("b", {}, "Loadlens"), where, state, theme);
  try {
    await openSession();
    const runs = await get<Runs>("/api/runs");
    single = runs.single;
    if (single === null || runs.runs.length > 1) where.before(h("a", { href: "#/runs" }, "all runs"));
  } catch (error) {
    const isClosed = error instanceof Refused && error.status === 401;
    main.replaceChildren(
      ...(isClosed ? [h("h1", {}, "This page needs its key"), h("p", {}, "Open the whole address that loadlens printed, with the part after #.")] : [fault(error)]),
    );
    return;
  }
  addEventListener("hashchange", () => {
    if (location.hash && !location.hash.startsWith("#/")) return; // an anchor, not a screen
    show();
    main.focus({ preventScroll: true });
  });
  show();
}

void begin();
