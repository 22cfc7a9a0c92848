// The reading pane: a page of the book beside the answer, scrolled to the quoted words.
//
// On wide screens the pane is a column of the chat page, which stays usable; on narrow ones it is a sheet above it. The
// user reads on with the list of headings and the pages before and after, and asks about selected text.
//
// Invariant: the marked words are those of the quote. If they cannot be found in the rendered passage, the passage is
// marked instead.

import { ownImage } from "./after.js";
import { loadPage } from "./api.js";
import { bookLink, element, icon, iconButton } from "./elements.js";
import { finishBlocks, linked, trusted } from "./prose.js";
import { offerForSelection, selectedText } from "./selection.js";

const wide = window.matchMedia("(min-width: 75rem)");

export class ReadingPane {
  #dialog;
  #title = element("h2", { id: "reading-title", class: "reading-title", tabindex: "-1" });
  #where = element("p", { class: "reading-where" });
  #headings = element("select", { id: "reading-headings", "aria-label": "On this page", "data-testid": "reading-headings", change: () => this.#goTo(this.#headings.value) });
  #quiz = iconButton("check", "", { class: "plain", "data-testid": "reading-quiz", click: () => this.#startQuiz() }, "Quiz me on this page");
  #outside = element("span", {});
  #body = element("div", { class: "reading-body book-page", role: "document", tabindex: "0", "aria-labelledby": "reading-title", "data-testid": "reading-body", scroll: () => this.#follow() });
  #view = element("span", { class: "reading-view" });
  #neighbors = element("nav", { class: "reading-neighbors", "aria-label": "Pages before and after" });
  #askSelection;
  #opener = null;
  #isSwitching = false;
  #page = null;
  /** The drawn pages of a PDF. */
  #drawn = null;
  #wanted = 0;
  /** Where the pane was scrolled to for a heading, which may be too far down to be at the top. */
  #jumped = -1;

  /** `where` receives the pane; `onSelect` receives selected text to ask about, `announce` says what happened. */
  constructor(where, { onSelect, announce }) {
    this.onSelect = onSelect;
    this.announce = announce;
    this.#askSelection = element(
      "button",
      // A press must not remove the selection.
      { type: "button", class: "primary ask-selection", hidden: true, "data-testid": "ask-selection", pointerdown: (event) => event.preventDefault(), click: () => this.#useSelection() },
      icon("book"),
      "Ask about this",
    );
    this.#dialog = element(
      "dialog",
      { class: "reading", "aria-labelledby": "reading-title", "data-testid": "reading", close: () => this.#closed(), keydown: (event) => this.#onKey(event), click: (event) => event.target === this.#dialog && this.close() },
      element(
        "div",
        { class: "reading-head" },
        element("div", {}, this.#title, this.#where),
        this.#outside,
        iconButton("close", "Close the book", { class: "quiet", "data-testid": "reading-close", click: () => this.close() }),
      ),
      element("div", { class: "reading-tools" }, this.#headings, this.#view, this.#quiz),
      this.#body,
      this.#neighbors,
      this.#askSelection,
    );
    where.append(this.#dialog);
    offerForSelection(this.#askSelection, (node) => this.#body.contains(node));
    wide.addEventListener("change", () => this.#dialog.open && this.#show());
  }

  get isOpen() {
    return this.#dialog.open;
  }

  /**
   * Opens a page: at the quoted words of a passage (`chunk` and `quote`), at a heading (`anchor`), or at its top. `url`
   * opens the same place on the site.
   */
  async open({ document, chunk = null, quote = null, anchor = null, url = null }) {
    if (!this.#dialog.open) this.#opener = window.document.activeElement;
    const mine = (this.#wanted += 1);
    try {
      const page = this.#page?.document_id === document ? this.#page : await loadPage(document);
      if (mine !== this.#wanted) return;
      this.#fill(page, url ?? page.url);
      this.#show();
      const drawn = page.drawn_pages && (await drawnPages(this.#body, page, (place) => this.#scrollTo(place)));
      if (mine !== this.#wanted) return;
      if (drawn) this.#useDrawn(drawn);
      const found = chunk ? this.#mark(chunk, quote) : this.#at(anchor);
      this.#scrollTo(found);
      this.#title.focus({ preventScroll: true });
      this.announce(found && chunk ? `${page.title}, opened at the quoted words.` : `${page.title}, opened.`);
      if (drawn && chunk) await this.#box(found);
    } catch (problem) {
      // The link to the site still works.
      if (mine !== this.#wanted) return;
      this.#fill({ title: "This page could not be opened", module_name: "", html: "", sections: [], document_id: null }, url);
      this.#body.append(element("p", { role: "alert" }, problem.message));
      this.#show();
    }
  }

  close() {
    this.#dialog.close();
  }

  #useDrawn(drawn) {
    this.#drawn = drawn;
    this.#view.replaceChildren(drawn.switch);
  }

  /** Puts boxes around the marked words of a drawn page, and scrolls to them unless the user has scrolled. */
  async #box(found) {
    const [drawn, before] = [this.#drawn, this.#body.scrollTop];
    await drawn.box([...this.#body.querySelectorAll("mark")]);
    if (drawn === this.#drawn && this.#body.scrollTop === before) this.#scrollTo(found);
  }

  #show() {
    if (this.#dialog.open) {
      if (this.#dialog.matches(":modal") !== wide.matches) return;
      this.#isSwitching = true;
      this.#dialog.close();
    }
    if (wide.matches) this.#dialog.show();
    else this.#dialog.showModal();
    document.body.classList.toggle("is-reading", wide.matches);
  }

  #fill(page, url) {
    this.#page = page;
    this.#title.textContent = page.title;
    this.#where.textContent = [page.book_name, page.module_name].filter((name) => name && name !== page.title).join(" › ");
    this.#outside.replaceChildren(url ? bookLink(url, { class: "plain", "data-testid": "reading-site" }, siteLabel(url), icon("outside")) : "");
    const { sections } = page;
    const indent = (level) => "\u00a0".repeat(3 * Math.max(0, level - 2));
    this.#headings.replaceChildren(element("option", { value: "" }, "Top of the page"), ...sections.map(({ heading, level }, number) => element("option", { value: String(number) }, indent(level) + heading)));
    this.#headings.hidden = sections.length < 2;
    this.#quiz.hidden = !page.document_id;
    this.#drawn = null;
    this.#view.replaceChildren();
    this.#body.classList.remove("shows-text");
    this.#body.replaceChildren(...rendered(page.html));
    finishBlocks(this.#body);
    const step = (neighbor, side, label) => neighbor && element("button", { type: "button", class: `plain ${side}`, "data-testid": `reading-${side}`, click: () => this.open({ document: neighbor.document_id }) }, element("small", {}, label), element("span", {}, neighbor.title));
    this.#neighbors.replaceChildren(...[step(page.previous, "previous", "Previous"), step(page.next, "next", "Next")].filter(Boolean));
  }

  async #startQuiz() {
    // Loaded when it is needed for the first time.
    const { startQuiz } = await import("./quiz.js");
    await startQuiz(this.#page, { open: (place) => this.open(place) });
  }

  #goTo(number) {
    const heading = number === "" ? null : this.#body.querySelectorAll("[data-heading]")[Number(number)];
    this.#scrollTo(heading);
    this.#jumped = this.#body.scrollTop;
  }

  /** The list of headings names the section that is being read. */
  #follow() {
    if (this.#headings.hidden || Math.abs(this.#body.scrollTop - this.#jumped) < 2) return;
    const { top, height } = this.#body.getBoundingClientRect();
    const isAbove = (heading) => (this.#drawn?.placeOf(heading) ?? heading).getBoundingClientRect().top <= top + height / 4 + 8;
    const passed = this.#body.scrollTop > 0 ? [...this.#body.querySelectorAll("[data-heading]")].filter(isAbove).length : 0;
    this.#headings.value = passed > 0 ? String(passed - 1) : "";
  }

  /** Scrolls only the pane; `scrollIntoView` would also scroll the conversation. */
  #scrollTo(wanted) {
    if (!wanted) {
      this.#body.scrollTop = 0;
      return;
    }
    const target = this.#drawn?.placeOf(wanted) ?? wanted;
    const room = target.matches("mark, .word-box") ? this.#body.clientHeight / 4 : 0;
    this.#body.scrollTop += target.getBoundingClientRect().top - this.#body.getBoundingClientRect().top - room;
  }

  #at(anchor) {
    return anchor && [...this.#body.querySelectorAll("[data-anchor]")].find((one) => one.dataset.anchor === anchor);
  }

  #mark(chunk, quote) {
    const passage = [...this.#body.querySelectorAll("[data-chunk]")].find((one) => one.dataset.chunk === chunk);
    if (!passage) return null;
    const marks = markWords(passage, quote ?? "");
    if (marks.length === 0) passage.classList.add("quoted");
    return marks[0] ?? passage;
  }

  #useSelection() {
    const chosen = selectedText((node) => this.#body.contains(node));
    this.#askSelection.hidden = true;
    if (!chosen) return;
    const { text } = chosen;
    if (!wide.matches) this.close();
    this.onSelect({ text, url: this.#page.url });
  }

  #onKey(event) {
    // A modal dialog closes by itself.
    if (event.key === "Escape" && wide.matches) this.close();
  }

  #closed() {
    if (this.#isSwitching) {
      this.#isSwitching = false;
      return;
    }
    document.body.classList.remove("is-reading");
    this.#askSelection.hidden = true;
    if (this.#opener?.isConnected) this.#opener.focus({ preventScroll: true });
    this.#opener = null;
  }
}

/** The pages of a PDF as they are printed; null if that is impossible, since its text is there. */
async function drawnPages(...pane) {
  try {
    const { DrawnPages } = await import("./pdf-page.js");
    return new DrawnPages(...pane);
  } catch {
    return null;
  }
}

/** A PDF opens at its page. */
function siteLabel(url) {
  // A page that is not published is a page of this server.
  if (url.startsWith(new URL("read/", document.baseURI).href)) return "Open as a page";
  const page = /\.pdf#page=(\d+)/i.exec(url)?.[1];
  return page ? `Open page ${page} of the PDF` : "Open on the site";
}

/** The elements of a page. Its ids could be those of the chat page, so they become `data-anchor`. */
function rendered(html) {
  const template = document.createElement("template");
  template.innerHTML = trusted(html) ?? "";
  const { content } = template;
  for (const one of content.querySelectorAll("[id]")) {
    if (/^H[1-6]$/.test(one.tagName)) one.dataset.heading = "";
    one.dataset.anchor = one.id;
    one.removeAttribute("id");
  }
  for (const picture of content.querySelectorAll("figure img")) ownFigure(picture);
  linked(content);
  return content.childNodes;
}

/** Shows the server's copy of an image, at its address relative to the chat page. */
function ownFigure(picture) {
  const address = ownImage(picture.getAttribute("src"));
  if (!address) return;
  picture.src = address;
  picture.dataset.own = "";
  picture.closest("a")?.setAttribute("href", address);
}

const COUNTED = /[\p{L}\p{N}]/u;

/**
 * Marks the words of `quote`, which is Markdown, in the rendered passage, and returns the marks. Only letters and digits
 * are compared. If the quote is not found as a whole, its lines are looked for.
 */
function markWords(passage, quote) {
  const { text, places } = lettersOf(passage);
  const found = (words, from = 0) => {
    const at = words ? text.indexOf(words, from) : -1;
    return at < 0 ? [] : [[at, at + words.length]];
  };
  let spans = found(bare(quote));
  if (spans.length === 0) {
    let end = 0;
    for (const line of quote.split("\n")) {
      const next = found(bare(line), end);
      spans = spans.concat(next);
      end = next[0]?.[1] ?? end;
    }
  }
  // From the last to the first, because marking moves the text after it.
  return spans.reverse().flatMap(([from, to]) => mark(places.slice(from, to)).reverse()).reverse();
}

function lettersOf(passage) {
  const [letters, places] = [[], []];
  const walker = document.createTreeWalker(passage, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    // The source of a formula follows it.
    if (node.parentElement.closest("math")) continue;
    for (let at = 0; at < node.data.length; at += 1) {
      if (!COUNTED.test(node.data[at])) continue;
      letters.push(node.data[at]);
      places.push([node, at]);
    }
  }
  return { text: letters.join(""), places };
}

/** The letters and digits of Markdown as they are shown: without targets of links, numbers of items and languages of code. */
function bare(markdown) {
  const shown = markdown.replace(/^\s*(\x60{3}|~{3}).*$/gm, "").replace(/\]\([^)\s]*\)/g, "]").replace(/^\s*\d+[.)]\s/gm, "");
  return [...shown].filter((sign) => sign.length === 1 && COUNTED.test(sign)).join("");
}

/**
 * Wraps the text between the first and the last of these places in each text node, with the punctuation after it. In
 * code, where words are few, everything between the first and the last place is marked.
 */
function mark(places) {
  const nodes = new Map();
  for (const [node, at] of places) nodes.set(node, [nodes.get(node)?.[0] ?? at, at]);
  const [first] = places[0];
  const [last] = places[places.length - 1];
  for (const code of new Set([...nodes.keys()].map((node) => node.parentElement.closest("pre")).filter(Boolean))) {
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    // The brackets that close the code belong to it.
    const end = texts.indexOf(last);
    const isWhole = end >= 0 && ![last.data.slice(nodes.get(last)[1] + 1), ...texts.slice(end + 1).map((node) => node.data)].some((text) => COUNTED.test(text));
    for (const node of texts) {
      const isAfter = (one, other) => Boolean(one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);
      if (isAfter(node, first) || (isAfter(last, node) && !isWhole) || !node.data.trim()) continue;
      const [from, to] = nodes.get(node) ?? [];
      nodes.set(node, [node === first ? from : 0, node === last && !isWhole ? to : node.data.length - 1]);
    }
  }
  return [...nodes].map(([node, [from, to]]) => {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to + 1 + /^[.!?,;:)\]”’"']*/.exec(node.data.slice(to + 1))[0].length);
    const made = element("mark", {});
    range.surroundContents(made);
    return made;
  });
}
