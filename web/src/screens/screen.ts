// What screens share: their shape, states with glyph and word, messages, and a question before an action.

import { Refused, type State } from "../api.ts";
import { h, put, say } from "../dom.ts";
import type { Known } from "../known.ts";

export interface Screen {
  readonly element: HTMLElement;
  /** Draw again with the colours of the theme. */
  recolour?(): void;
  destroy?(): void;
}

/** What the top bar says beside the name of the program. */
export interface Bar {
  where(text: string, known?: Known): void;
}

const GLYPHS: Readonly<Record<State, string>> = { ok: "●", caution: "▲", bad: "■", unknown: "○" };

/** A state as glyph and word: colour never stands alone. */
export const badge = ({ words, state }: Known, name = "badge"): HTMLElement =>
  h("span", { class: `${name} ${state}` }, h("span", { class: "glyph", "aria-hidden": "true" }, GLYPHS[state]), ` ${words}`);

export const message = (words: string, state: State, hint?: string | null): HTMLElement =>
  h("p", { class: `message ${state}` }, words, hint ? h("span", { class: "note" }, ` ${hint}`) : null);

/** A part that scrolls sideways where it is wider than the screen, also with the keyboard. */
export const scrolled = (name: string, ...children: readonly HTMLElement[]): HTMLElement =>
  h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, ...children);

/** The head of a table; `left` has the columns that begin at their left edge, `double` one that covers two. */
export const headOf = (texts: readonly string[], left: readonly number[], double = -1): HTMLElement =>
  h("thead", {}, h("tr", {}, ...texts.map((text, i) => h("th", { scope: "col", class: left.includes(i) ? "left" : "", colspan: i === double && 2 }, text))));

/** Return an error as a message: what is wrong, and one thing to try. */
export function fault(error: unknown): HTMLElement {
  if (error instanceof Refused) return message(error.message, "bad", error.hint);
  return message(`the page failed: ${error instanceof Error ? error.message : String(error)}`, "bad", "reload it; the record has everything");
}

/** Ask before an action, do it, and say what came of it in `result`. */
export function ask(
  title: string,
  words: string,
  verb: string,
  act: () => Promise<{ words?: string; id?: string | null }>,
  result: HTMLElement,
): void {
  const dialog = h("dialog", { "aria-labelledby": "ask" });
  const opener = document.activeElement;
  const close = (): void => { dialog.close(); };
  const confirm = async (): Promise<void> => {
    close();
    result.replaceChildren(); // what came of an action before
    let shown: HTMLElement;
    try {
      const { words: done, id } = await act();
      shown = message(done ?? "done", "ok");
      if (id) put(shown, " ", h("a", { href: `#/run/${encodeURIComponent(id)}` }, "Open it"));
    } catch (error) {
      shown = fault(error);
    }
    result.replaceChildren(shown);
    say(shown.textContent);
  };
  put(
    dialog,
    h("h2", { id: "ask" }, title),
    h("p", {}, words),
    h("div", { class: "actions" }, h("button", { type: "button", class: "bad", click: () => void confirm() }, verb), h("button", { type: "button", click: close }, "Cancel")),
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (opener instanceof HTMLElement) opener.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
}
