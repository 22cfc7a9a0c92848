// Extends a VitePress theme with Docent's widget and a search button.
//
// Invariant: nothing here needs a browser until `enhanceApp` runs in one, so pages can be rendered on the server.

import { h } from "vue";

/** Returns `theme` with Docent on every page. */
export function withDocent(theme, options) {
  check(options);
  const extended = {
    extends: theme,
    enhanceApp() {
      if (typeof document !== "undefined") load(options);
    },
  };
  const Layout = layoutOf(theme);
  if (options.search !== false && Layout) {
    extended.Layout = (_, { slots }) => h(Layout, null, { ...slots, "nav-bar-content-before": () => [slots["nav-bar-content-before"]?.(), searchButton()] });
  }
  return extended;
}

const isText = (value) => typeof value === "string";

const OPTIONS = {
  url: [(value) => isText(value) && /^https?:\/\/./.test(value), 'the address of your Docent server, such as "https://docent.example.org"'],
  title: [isText, "a string"],
  placeholder: [isText, "a string"],
  accent: [isText, "a CSS color"],
  search: [(value) => typeof value === "boolean", "true or false"],
};

function check(options = {}) {
  for (const name of Object.keys(options)) {
    if (!(name in OPTIONS)) throw new Error(`vitepress-docent: unknown option \`${name}\`; the options are ${Object.keys(OPTIONS).join(", ")}`);
  }
  for (const [name, [fits, wanted]] of Object.entries(OPTIONS)) {
    const value = options[name];
    if (value === undefined ? name === "url" : !fits(value)) throw new Error(`vitepress-docent: \`${name}\` must be ${wanted}`);
  }
}

const layoutOf = (theme) => theme.Layout ?? (theme.extends && layoutOf(theme.extends));

function load({ url, title, placeholder, accent = "var(--vp-c-brand-1)", search }) {
  const root = document.documentElement;
  const script = document.createElement("script");
  script.src = `${url.replace(/\/+$/, "")}/widget.js`;
  const settings = { title, placeholder, accent, search: search === false ? "off" : undefined };
  for (const [name, value] of Object.entries(settings)) if (value !== undefined) script.dataset[name] = value;
  // The widget follows `data-theme` of <html>; VitePress has a class, and changes the language with the page.
  const follow = () => {
    root.dataset.theme = root.classList.contains("dark") ? "dark" : "light";
    script.dataset.locale = root.lang;
  };
  follow();
  new MutationObserver(follow).observe(root, { attributeFilter: ["class", "lang"] });
  document.head.append(script);
}

const STYLES = `
.docent-search { display: flex; align-items: center; gap: 8px; height: 40px; margin: auto 8px; padding: 0 12px; border: 1px solid transparent; border-radius: 8px; background: var(--vp-c-bg-alt); color: var(--vp-c-text-2); font-size: 13px; font-weight: 500; }
.docent-search:hover { border-color: var(--vp-c-brand-1); color: var(--vp-c-text-1); }
.docent-search kbd::after { content: "Ctrl K"; }
.mac .docent-search kbd::after { content: "⌘K"; }
@media (max-width: 767px) { .docent-search { margin: auto 0; background: none; } .docent-search span, .docent-search kbd { display: none; } }`;

const searchButton = () => [
  h("style", { innerHTML: STYLES }),
  h("button", { type: "button", class: "docent-search", "aria-label": "Search", "aria-haspopup": "dialog", "aria-keyshortcuts": "Control+K Meta+K", onClick: () => window.Docent?.search() }, [
    h("svg", { viewBox: "0 0 20 20", width: 16, height: 16, fill: "none", stroke: "currentColor", "stroke-width": 2, "stroke-linecap": "round", "aria-hidden": "true" }, [h("circle", { cx: 8.5, cy: 8.5, r: 5.5 }), h("path", { d: "m13 13 4.5 4.5" })]),
    h("span", "Search"),
    h("kbd", { "aria-hidden": "true" }),
  ]),
];
