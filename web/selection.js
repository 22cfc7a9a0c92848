// Asking about text that the user has selected on the author's page, or in the reading pane.

const SHORTEST = 3;
const LONGEST = 2000;
const MARGIN = 8;

/** Shows `button` next to the selection, and hides it when nothing is selected. `accepts` says whether a selection in a node counts. */
export function offerForSelection(button, accepts) {
  let waiting = null;
  document.addEventListener("selectionchange", () => {
    clearTimeout(waiting);
    // While the user drags, the selection changes all the time.
    waiting = setTimeout(() => place(button, selectedText(accepts)), 180);
  });
  window.addEventListener("scroll", () => !button.hidden && place(button, selectedText(accepts)), { passive: true, capture: true });
}

/** The selected text and its range; null if nothing is selected, or not enough, or in a field. */
export function selectedText(accepts) {
  const chosen = window.getSelection();
  if (!chosen || chosen.isCollapsed || chosen.rangeCount === 0) return null;
  const active = document.activeElement;
  if (active?.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(active?.tagName ?? "")) return null;
  if (!accepts(chosen.anchorNode)) return null;
  const text = chosen.toString().trim();
  const length = [...text].length;
  return length >= SHORTEST && length <= LONGEST ? { text, range: chosen.getRangeAt(0) } : null;
}

function place(button, chosen) {
  const rects = chosen?.range.getClientRects() ?? [];
  const at = rects[rects.length - 1] ?? chosen?.range.getBoundingClientRect();
  button.hidden = !at || at.bottom < 0 || at.top > window.innerHeight;
  if (button.hidden) return;
  const size = button.getBoundingClientRect();
  const below = at.bottom + MARGIN;
  const top = below + size.height > window.innerHeight ? at.top - size.height - MARGIN : below;
  const last = document.documentElement.clientWidth - size.width - MARGIN;
  button.style.top = `${Math.max(MARGIN, top)}px`;
  button.style.left = `${Math.max(MARGIN, Math.min(at.right - size.width / 2, last))}px`;
}
