// Shows an element next to another one, above everything else.
//
// Invariant: only one floating element is shown at a time, and Escape or a press outside
// closes it. It stays inside the window, or inside the closest ancestor with `data-frame`.

import { focusedBeside } from "./elements.js";

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

function onKey(event) {
  if (event.key !== "Escape") return;
  // The element below, such as the open sidebar, must not react to the same key press.
  event.stopPropagation();
  event.preventDefault();
  const { floating, anchor } = shown;
  const focused = focusedBeside(anchor);
  const inside = floating.contains(focused) || anchor === focused;
  hide("escape");
  if (inside) anchor.focus();
}

function onPress(event) {
  // The target of an event inside a shadow root is its host.
  const path = event.composedPath();
  if (!path.includes(shown.floating) && !path.includes(shown.anchor)) hide("outside");
}

function position(floating, anchor, sheet) {
  const frame = anchor.closest("[data-frame]")?.getBoundingClientRect();
  // On a phone, a card is a sheet at the bottom edge, placed by the style sheet.
  if (sheet && !frame && window.matchMedia("(max-width: 40rem)").matches) {
    floating.style.left = floating.style.top = "";
    return;
  }
  const { clientWidth, clientHeight } = document.documentElement;
  const within = frame ?? new DOMRect(0, 0, clientWidth, clientHeight);
  const at = anchor.getBoundingClientRect();
  if (at.bottom < within.top || at.top > within.bottom) {
    hide("scrolled");
    return;
  }
  if (frame) floating.style.width = `${frame.width - 2 * MARGIN}px`;
  const size = floating.getBoundingClientRect();
  const [first, last] = [within.left + MARGIN, within.right - MARGIN - size.width];
  const [highest, lowest] = [within.top + MARGIN, within.bottom - MARGIN - size.height];
  const below = at.bottom + GAP;
  const above = at.top - GAP - size.height;
  const top = below <= lowest || above < highest ? Math.min(below, lowest) : above;
  floating.style.left = `${Math.max(first, Math.min(at.left - 24, last))}px`;
  floating.style.top = `${Math.max(highest, top)}px`;
}
