// The only place that makes elements. Everything that a record holds becomes a text node, never markup.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;

/** Make an element: functions are event listeners, `true` is an attribute without a value, `false` leaves it out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, String(value));
  }
  put(element, ...children);
  return element;
}

/** Append what is there; null, undefined and false are left out. */
export function put(parent: Element, ...children: readonly Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) parent.append(child instanceof Node ? child : String(child));
  }
}

/** Set an element's text only if it changes: screen readers and selections stay where they are. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Replace an element's children if `key` differs from the last time; a fold stays open, and keeps the focus. */
export function redraw(element: HTMLElement, key: string, children: () => readonly Child[]): void {
  if (element.dataset.key === key) return;
  element.dataset.key = key;
  const before = element.querySelector("details");
  const hadFocus = before !== null && document.activeElement === before.querySelector("summary");
  element.replaceChildren();
  put(element, ...children());
  const after = element.querySelector("details");
  if (before?.open && after) after.open = true;
  if (hadFocus) after?.querySelector("summary")?.focus({ preventScroll: true });
}

/** Put these children in this order: one that stays keeps its folds, and the focus if it has it. */
export function arrange(parent: Element, children: readonly Element[]): void {
  if (children.length === parent.children.length && children.every((child, i) => child === parent.children[i])) return;
  const focused = document.activeElement;
  parent.replaceChildren(...children);
  if (focused instanceof HTMLElement && focused !== parent && parent.contains(focused)) focused.focus({ preventScroll: true });
}

/** Report a change to screen readers. */
export function say(text: string): void {
  const region = document.getElementById("said");
  if (region) setText(region, text);
}
