// Dark and light: the system's choice until the reader makes one, which lasts in this browser.

const KEY = "loadlens-theme";
const root = document.documentElement;

try {
  const kept = localStorage.getItem(KEY);
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
} catch {
  // storage is switched off: the system's choice holds
}

export function isDark(): boolean {
  return (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
}

export function switchTheme(): void {
  const next = isDark() ? "light" : "dark";
  root.dataset.theme = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // it lasts until the page is closed
  }
}
