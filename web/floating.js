// Shows an element next to another one, above everything else.
//
// Invariant: only one floating element is shown at a time, it stays inside the window,
// and Escape or a press outside closes it.

const MARGIN = 12;
const GAP = 8;
let shown = null;

/**
 * Shows `floating`, which is already in the document, next to `anchor`. `onHide` is
 * called once, with the reason, when it is hidden.
 */
export function show(floating, anchor, { onHide, sheet = false } = {}) {
  hide("replaced");
  // In the top layer no ancestor can clip the element; older browsers do without it.
  if (floating.showPopover) {
    floating.setAttribute("popover", "manual");
    floating.showPopover();
  }
  const place = () => position(floating, anchor, sheet);
  const cleanup = new AbortController();
  shown = { floating, anchor, onHide, cleanup };
  const { signal } = cleanup;
  window.addEventListener("scroll", place, { signal, passive: true, capture: true });
  window.addEventListener("resize", place, { signal });
  document.addEventListener("keydown", onKey, { signal, capture: true });
  document.addEventListener("pointerdown", onPress, { signal, capture: true });
  place();
}

/** Hides the element that is shown, if any. */
export function hide(reason = "closed") {
  if (!shown) return;
  const { floating, onHide, cleanup } = shown;
  shown = null;
  cleanup.abort();
  if (floating.hidePopover && floating.isConnected && floating.matches(":popover-open")) floating.hidePopover();
  onHide?.(reason);
}

/** Whether this element is shown. */
export function isShown(floating) {
  return shown?.floating === floating;
}

function onKey(event) {
  if (event.key !== "Escape") return;
  // The element below, such as the open sidebar, must not react to the same key press.
  event.stopPropagation();
  event.preventDefault();
  const { floating, anchor } = shown;
  const inside = floating.contains(document.activeElement) || anchor === document.activeElement;
  hide("escape");
  if (inside) anchor.focus();
}

function onPress(event) {
  if (!shown.floating.contains(event.target) && !shown.anchor.contains(event.target)) hide("outside");
}

function position(floating, anchor, sheet) {
  // On a phone, a card is a sheet at the bottom edge, placed by the style sheet.
  if (sheet && window.matchMedia("(max-width: 40rem)").matches) {
    floating.style.left = floating.style.top = "";
    return;
  }
  const at = anchor.getBoundingClientRect();
  if (at.bottom < 0 || at.top > window.innerHeight) {
    hide("scrolled");
    return;
  }
  const size = floating.getBoundingClientRect();
  const { clientWidth, clientHeight } = document.documentElement;
  const left = Math.min(Math.max(MARGIN, at.left - 24), clientWidth - size.width - MARGIN);
  const below = at.bottom + GAP;
  const above = at.top - GAP - size.height;
  const fitsBelow = below + size.height <= clientHeight - MARGIN;
  const top = fitsBelow || above < MARGIN ? Math.min(below, clientHeight - size.height - MARGIN) : above;
  floating.style.left = `${Math.max(MARGIN, left)}px`;
  floating.style.top = `${Math.max(MARGIN, top)}px`;
}
