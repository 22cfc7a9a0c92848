// The keys that open the search.

/** Calls `open` for Ctrl-K or Command-K in `area`, unless the page itself has used the key. */
export function onControlK(area, open) {
  area.addEventListener("keydown", (event) => {
    const isShortcut = event.key?.toLowerCase() === "k" && event.ctrlKey !== event.metaKey && !event.shiftKey && !event.altKey;
    if (!isShortcut || event.defaultPrevented) return;
    event.preventDefault();
    open();
  });
}

/** Calls `open` for `/` in `area`, unless the user is typing. */
export function onSlash(area, open) {
  area.addEventListener("keydown", (event) => {
    const isShortcut = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !event.defaultPrevented;
    const target = event.composedPath()[0];
    if (!isShortcut || target.isContentEditable || target.matches?.("input, textarea, select")) return;
    event.preventDefault();
    open();
  });
}
