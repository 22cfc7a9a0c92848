// Search as you type: a dialog with the pages and sections for what has been typed so far.
//
// The focus stays in the input box; the arrow keys move through the rows, and Enter follows
// the active one. The last row asks the text as a question.
//
// Invariant: the rows always belong to the text in the box, however late a response arrives.

import { suggest } from "./api.js";
import { bookLink, element, icon, iconButton, isPlain } from "./elements.js";

const MOST_RECENT = 6;

export class Search {
  #dialog;
  #input;
  #rows;
  #status;
  #forget;
  #request = null;
  /** The row that Enter follows. */
  #active = null;

  /**
   * `where` receives the dialog; `part` returns the book, module, version and locale to search, or a promise of them. `onAsk` receives a question. Without
   * `onPage`, results are links; with it, it receives the place to open. Recent searches are stored under `name` in this
   * browser.
   */
  constructor(where, { title, part, onAsk, onPage = null, name }) {
    this.part = part;
    this.onAsk = onAsk;
    this.onPage = onPage;
    this.recent = new RecentSearches(name);
    this.#input = element("input", {
      id: "search-input", type: "text", role: "combobox", "aria-label": title, "aria-autocomplete": "list", "aria-expanded": "true", "aria-controls": "search-rows",
      placeholder: title, autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "search", maxlength: "200", "data-testid": "search-input",
      input: () => this.#changed(),
      keydown: (event) => this.#onKey(event),
    });
    this.#rows = element("div", { id: "search-rows", class: "search-rows", role: "listbox", "aria-label": "Results", "data-testid": "search-rows" });
    this.#status = element("p", { class: "search-status", role: "status", "data-testid": "search-status" });
    this.#forget = element("button", { type: "button", class: "plain faint", "data-testid": "search-forget", click: () => this.#clearRecent() }, "Clear recent searches");
    this.#dialog = element(
      "dialog",
      { class: "search", "aria-label": title, "data-testid": "search", click: (event) => event.target === this.#dialog && this.#dialog.close(), close: () => this.#closed() },
      element(
        "div",
        { class: "search-frame" },
        element("div", { class: "search-box" }, icon("search"), this.#input, iconButton("close", "Close", { class: "quiet", "data-testid": "search-close", click: () => this.#dialog.close() })),
        this.#rows,
        element("div", { class: "search-foot" }, this.#status, this.#forget),
      ),
    );
    where.append(this.#dialog);
  }

  open() {
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#input.focus();
    this.#input.select();
    this.#changed();
  }

  get #typed() {
    return this.#input.value.trim();
  }

  async #changed() {
    this.#request?.abort();
    const request = (this.#request = new AbortController());
    const typed = this.#typed;
    this.#forget.hidden = true;
    if (!typed) return this.#showRecent();
    try {
      // A trailing space says that the last word is finished.
      const part = await this.part();
      if (request.signal.aborted) return;
      const { pages } = await suggest(this.#input.value.trimStart(), part, request.signal);
      if (request.signal.aborted) return;
      this.#show([...pages.map((page) => this.#page(page)), this.#askRow(typed)], /[?？]$/.test(typed) ? -1 : 0);
      const count = pages.length === 1 ? "1 page" : `${pages.length} pages`;
      this.#tell(pages.length === 0 ? `No page matches “${typed}”.` : count, pages.length > 0);
    } catch (problem) {
      if (request.signal.aborted) return;
      this.#show([this.#askRow(typed)], 0);
      this.#tell(problem.message);
    }
  }

  #showRecent() {
    const searches = this.recent.all();
    const row = (text) => this.#option(element("button", { type: "button", class: "search-row", click: () => this.#search(text) }, icon("recent"), element("span", {}, text)));
    const group = element("div", { role: "group", "aria-label": "Recent searches", class: "search-group" }, searches.map(row));
    this.#show(searches.length > 0 ? [group] : [], 0);
    this.#tell(searches.length > 0 ? "Recent searches" : "Type to find pages and sections.", searches.length > 0);
    this.#forget.hidden = searches.length === 0;
  }

  #search(text) {
    this.#input.value = text;
    this.#input.focus();
    this.#changed();
  }

  #clearRecent() {
    this.recent.clear();
    this.#input.focus();
    this.#changed();
  }

  /** The rows of a page: the page itself and its best sections. */
  #page({ document_id, title, url, book_name, module_name, version, locale, sections }) {
    const name = title.map((piece) => piece.text).join("");
    const edition = [version, locale].filter(Boolean).join(", ");
    const place = [book_name, module_name, edition].filter((part) => part && part !== name).join(" › ");
    return element(
      "div",
      { role: "group", "aria-label": name, class: "search-group" },
      this.#link(document_id, url, "search-page", icon("book"), element("span", {}, pieces(title), place && element("small", {}, place))),
      sections.map((section) => this.#link(document_id, section.url, "search-section", element("span", {}, pieces(section.heading), section.text.length > 0 && element("small", {}, pieces(section.text))))),
    );
  }

  #link(document, url, kind, ...content) {
    const follow = (event) => {
      this.recent.add(this.#typed);
      this.#dialog.close();
      if (!this.onPage || !isPlain(event)) return;
      event.preventDefault();
      this.onPage({ document, url, anchor: decodeURIComponent(url.split("#")[1] ?? "") });
    };
    return this.#option(bookLink(url, { class: `search-row ${kind}`, click: follow }, ...content));
  }

  #askRow(text) {
    const ask = () => {
      this.recent.add(text);
      this.#dialog.close();
      this.onAsk(text);
    };
    return this.#option(element("button", { type: "button", class: "search-row search-ask", "data-testid": "search-ask", click: ask }, icon("send"), element("span", {}, `Ask: “${text}”`)));
  }

  #option(row) {
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", "false");
    row.tabIndex = -1;
    // A press must not take the focus out of the box.
    row.addEventListener("pointerdown", (event) => event.preventDefault());
    row.addEventListener("pointermove", () => this.#activate(row, false));
    return row;
  }

  get #options() {
    return [...this.#rows.querySelectorAll("[role='option']")];
  }

  #show(groups, active) {
    this.#rows.replaceChildren(...groups);
    this.#options.forEach((row, number) => (row.id = `search-row-${number}`));
    this.#activate(this.#options.at(active) ?? null);
    this.#rows.scrollTop = 0;
  }

  #activate(row, scroll = true) {
    this.#active?.setAttribute("aria-selected", "false");
    this.#active = row;
    if (!row) return this.#input.removeAttribute("aria-activedescendant");
    row.setAttribute("aria-selected", "true");
    this.#input.setAttribute("aria-activedescendant", row.id);
    if (scroll) row.scrollIntoView({ block: "nearest" });
  }

  #onKey(event) {
    if (event.isComposing) return;
    const options = this.#options;
    const at = options.indexOf(this.#active);
    const steps = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: Math.min(at + 5, options.length - 1), PageUp: Math.max(at - 5, 0) };
    if (event.key in steps && options.length > 0) {
      event.preventDefault();
      this.#activate(options.at(steps[event.key] % options.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      const { ctrlKey, metaKey, shiftKey } = event;
      // As for any link, Ctrl or Command opens a new tab.
      this.#active?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, composed: true, ctrlKey, metaKey, shiftKey }));
    }
  }

  #tell(text, quietly = false) {
    this.#status.textContent = text;
    this.#status.classList.toggle("visually-hidden", quietly);
  }

  #closed() {
    this.#request?.abort();
    // Chromium restores the focus without the caret, so typed text would be lost.
    const back = this.#dialog.getRootNode().activeElement;
    back?.blur();
    back?.focus({ preventScroll: true });
  }
}

function pieces(list) {
  return list.map(({ text, matched }) => (matched ? element("mark", {}, text) : text));
}

/** Searches that led to a page or an answer, latest first. Blocked or full storage is not an error. */
class RecentSearches {
  constructor(name) {
    this.name = name;
  }

  all() {
    try {
      const stored = JSON.parse(localStorage.getItem(this.name));
      return Array.isArray(stored) ? stored.filter((text) => typeof text === "string").slice(0, MOST_RECENT) : [];
    } catch {
      return [];
    }
  }

  add(text) {
    this.#store([text, ...this.all().filter((known) => known !== text)].slice(0, MOST_RECENT));
  }

  clear() {
    this.#store([]);
  }

  #store(searches) {
    try {
      localStorage.setItem(this.name, JSON.stringify(searches));
    } catch {
      // Recent searches are a convenience.
    }
  }
}
