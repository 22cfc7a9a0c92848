// Values that are kept for this tab, across reloads; other tabs do not see them.
//
// Invariant: blocked or full storage is not an error; values then last until the page is closed.

const unsaved = new Map();

/** A value stored under this name; null if there is none. */
export function recall(name) {
  if (unsaved.has(name)) return unsaved.get(name);
  try {
    return JSON.parse(sessionStorage.getItem(name));
  } catch {
    return null;
  }
}

/** Stores a value; null removes it. */
export function remember(name, value) {
  unsaved.delete(name);
  try {
    if (value === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, JSON.stringify(value));
  } catch {
    unsaved.set(name, value);
  }
}
