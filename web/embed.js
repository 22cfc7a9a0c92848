// What the scripts for other sites' pages share: the settings of their tag, styles in a shadow root, and colors.
//
// Invariant: no style leaks into the page, and none is taken from it except the `--docent-` variables.

import { readableColors } from "./contrast.js";
import { element } from "./elements.js";

const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
/** Pixels per `rem` of the shared style sheets: the text is a little smaller than on the chat page. */
const REM = 15;

/** The settings of the script's tag and the URL of the server: `data-api`, or where the script was loaded from. */
export function ownTag(file) {
  const ends = new RegExp(`/${file.replace(".", "\\.")}([?#]|$)`);
  const script = document.currentScript ?? [...document.querySelectorAll("script[src]")].findLast?.((one) => ends.test(one.src));
  const settings = script?.dataset ?? {};
  try {
    return { settings, base: settings.api ? new URL(settings.api.replace(/\/*$/, "/"), location.href) : new URL(".", script.src) };
  } catch {
    return { settings, base: new URL("/", location.href) };
  }
}

/** Adds style sheets of the chat page to a shadow root, where `rem` would depend on the font size of the author's page. */
export function addStyles(shadow, sheets) {
  const styles = [":host { all: initial; }", ...sheets.map(forShadow)].join("\n");
  try {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(styles);
    shadow.adoptedStyleSheets = [sheet];
  } catch {
    shadow.append(element("style", {}, styles));
  }
}

function forShadow(styles) {
  return styles
    .replace(/([\d.]+)rem\b/g, (_, number) => `${Number(number) * REM}px`)
    .replace(/:root(\[[^\]]+\])?/g, (_, attribute) => (attribute ? `:host(${attribute})` : ":host"));
}

/**
 * Chooses the theme of `host` and readable colors, now and whenever the theme of the page changes. `accented` returns an
 * element on the accent color, `surface` one on the background of text.
 */
export function followColors(host, settings, accented, surface) {
  if (settings.accent) host.style.setProperty("--docent-accent", settings.accent);
  const choose = () => {
    const theme = [settings.theme, document.documentElement.dataset.theme].find((wanted) => wanted === "light" || wanted === "dark");
    host.dataset.theme = theme ?? (prefersDark.matches ? "dark" : "light");
    const ground = (part) => getComputedStyle(part).backgroundColor;
    const { onAccent, link } = readableColors(ground(accented), ground(surface));
    host.style.setProperty("--on-accent", onAccent);
    host.style.setProperty("--link", link);
  };
  choose();
  new MutationObserver(choose).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  prefersDark.addEventListener("change", choose);
}

/** Keeps keys that are typed in `host` from the shortcuts of the page, which cannot see that they are typed into a text box. */
export function keepKeys(host) {
  const keep = (event) => !event.ctrlKey && !event.metaKey && event.stopPropagation();
  for (const kind of ["keydown", "keypress", "keyup"]) host.addEventListener(kind, keep);
}

/** Runs something that must never break the author's page. */
export function guarded(run) {
  try {
    run();
  } catch (error) {
    console.warn("Docent failed to start on this page.", error);
  }
}

/** Calls `show` as soon as the page has a body. */
export function whenReady(show) {
  if (document.body) guarded(show);
  else document.addEventListener("DOMContentLoaded", () => guarded(show), { once: true });
}
