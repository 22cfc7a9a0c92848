// The script of the Docent server: added to the page once, because the page stays when the user follows a link.

let tag = null;
let loaded = null;

/** Loads the script if it is not there yet, and tells it which locale and version the page has. */
export function describePage({ url, title, placeholder, accent, search, widget }, { locale, version }) {
  if (!tag) {
    tag = document.createElement("script");
    tag.src = `${url.replace(/\/+$/, "")}/${widget ? "widget" : "docsearch"}.js`;
    set({ title, placeholder, accent, search: search ? undefined : "off" });
    loaded = new Promise((resolve) => tag.addEventListener("load", () => resolve(widget ? () => window.Docent?.search() : searchAlone())));
    document.head.append(tag);
  }
  set({ locale, version });
}

/** Opens the search as soon as the script is loaded. */
export function openSearch() {
  loaded?.then((open) => open());
}

function set(attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) delete tag.dataset[name];
    else tag.dataset[name] = value;
  }
}

/** Without the widget, the script opens the search when the element that it was given is clicked. */
function searchAlone() {
  const opener = document.createElement("button");
  window.docsearch({ inputSelector: opener });
  return () => opener.click();
}
