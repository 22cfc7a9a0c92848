// A search box for sites that use DocSearch: the same call, another script tag.
//
//   <div id="docsearch"></div>
//   <script src="https://docent.example/docsearch.js"></script>
//   <script>docsearch({ container: "#docsearch" });</script>
//
// `container` is an element or a selector; `inputSelector` of DocSearch 2 works too: the input then opens the dialog.
// `placeholder` is used. `appId`, `apiKey`, `indexName` and other options are ignored: Docent has its own index.
//
// Attributes of the tag, all optional: data-api, data-book, data-module, data-version, data-locale, data-theme,
// data-accent and data-key, as for the widget. If the widget is on the page too, it answers the questions; without it, the chat page opens.
//
// Invariant: on any page, this script never throws, leaks no styles into the page, and takes no styles from it except
// the `--docent-` variables.

import { connect } from "./api.js";
import { editionHere } from "./edition.js";
import { element, icon, openInThisTab } from "./elements.js";
import { addStyles, followColors, keepKeys, ownTag, whenReady } from "./embed.js";
import { Search } from "./search.js";
import { onControlK, onSlash } from "./shortcut.js";
import baseStyles from "./base.css";
import searchStyles from "./search.css";
import docsearchStyles from "./docsearch.css";

const { settings, base } = ownTag("docsearch.js");
let shown = false;

window.docsearch = (options = {}) => whenReady(() => show(options));

function show({ container, inputSelector, placeholder }) {
  const found = [container, inputSelector].map((where) => (typeof where === "string" ? document.querySelector(where) : where));
  const [place, input] = found;
  if (shown || !(place || input)) {
    if (!shown) console.warn(`docsearch: no element matches ${container ?? inputSelector}`);
    return;
  }
  shown = true;
  connect(base, settings.key || null);
  // Links within the site stay in this tab.
  openInThisTab((url) => url.origin === location.origin);
  const host = element("docent-search");
  const shadow = host.attachShadow({ mode: "open" });
  addStyles(shadow, [baseStyles, searchStyles, docsearchStyles]);
  const title = placeholder || "Search";
  const search = new Search(shadow, { title, part: async () => ({ book: settings.book, module: settings.module, ...(await editionHere(settings)) }), onAsk: ask, name: `docent.searches:${base}` });
  const open = () => search.open();
  const key = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘K" : "Ctrl K";
  const button = element("button", { type: "button", class: "open-search", "aria-haspopup": "dialog", "aria-keyshortcuts": "Control+K Meta+K /", "data-testid": "open-search", click: open }, icon("search"), element("span", {}, title), element("kbd", { "aria-hidden": "true" }, key));
  button.hidden = !place;
  shadow.append(button);
  (place ?? document.body).append(host);
  input?.addEventListener("click", open);
  followColors(host, settings, button, shadow.querySelector("dialog"));
  keepKeys(host);
  onControlK(window, open);
  onSlash(window, open);
}

function ask(question) {
  if (window.Docent?.ask) window.Docent.ask(question);
  else window.open(new URL(`?q=${encodeURIComponent(question)}`, base), "_blank", "noopener");
}
