// The numbered marks after a sentence, and the card that shows the quoted words.
//
// Hovering over or focusing a mark shows the card; pressing the mark keeps the card open
// until Escape or a press elsewhere. A card comes right after its mark in the document, so
// that screen readers, and Tab in a card that was opened with Enter, move from the mark into
// the card. Otherwise Tab moves on to the next mark.
//
// Invariant: the highlighted words are exactly the citation's quote, whether or not the
// passage around them is known.

import { bookLink, element, focusedBeside, followable, icon, iconButton, isPlain, readableAddress, scrollable } from "./elements.js";
import * as floating from "./floating.js";

const OPEN_AFTER = 120;
const CLOSE_AFTER = 260;
const CONTEXT = 260;

/**
 * A mark for one citation. `source` is the passage it quotes, or undefined if the server
 * did not send it; `description` is the id of an element that contains the quote, and
 * `quoted` returns the quote as it is shown.
 */
export function citationMark(citation, source, description, quoted) {
  const mark = element(
    "button",
    {
      type: "button",
      class: "citation",
      "data-testid": "citation",
      "aria-label": `Citation ${citation.id}: ${whereabouts(citation, source).join(", ")}`,
      "aria-describedby": description,
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
    },
    String(citation.id),
  );
  new Card(mark, citation, source, quoted);
  return mark;
}

/** The page title and the headings of a citation, outermost first, without repeating the title. */
export function whereabouts(citation, source) {
  const headings = source?.heading_hierarchy?.length ? source.heading_hierarchy : [citation.heading];
  return [citation.page_title, ...headings.filter((heading) => heading && heading !== citation.page_title)];
}

let readPage = null;

/** From now on, `read` opens citations beside the answer. Unless this is called, they are links to the site. */
export function readBeside(read) {
  readPage = read;
}

/**
 * A link to the cited words, or their address as text if a browser cannot open it. `leave` is called before they are
 * shown beside the answer.
 */
export function openInBook({ url, chunk_id, quote }, source, leave = () => {}) {
  if (!followable(url)) return element("span", { class: "address" }, readableAddress(url));
  const read = source?.document_id && readPage;
  const follow = (event) => {
    if (!isPlain(event)) return;
    event.preventDefault();
    leave();
    read({ document: source.document_id, chunk: chunk_id, quote, url });
  };
  return bookLink(url, { class: "open-in-book", click: read && follow }, "Open in the book", icon(read ? "book" : "outside"));
}

/**
 * Splits the passage into the text before the quote, the quote, and the text after it.
 * Offsets count UTF-8 bytes, not JavaScript's UTF-16 units.
 */
function cutPassage(citation, source) {
  const alone = { before: "", quote: citation.quote, after: "" };
  if (!source?.content) return alone;
  const bytes = new TextEncoder().encode(source.content);
  const text = (from, to) => new TextDecoder().decode(bytes.subarray(from, to));
  if (text(citation.start, citation.end) === citation.quote) {
    return { before: text(0, citation.start), quote: citation.quote, after: text(citation.end, bytes.length) };
  }
  const found = source.content.indexOf(citation.quote);
  if (found < 0) return alone;
  return {
    before: source.content.slice(0, found),
    quote: citation.quote,
    after: source.content.slice(found + citation.quote.length),
  };
}

class Card {
  constructor(mark, citation, source, quoted = () => citation.quote) {
    this.mark = mark;
    this.citation = citation;
    this.source = source;
    this.quoted = quoted;
    this.card = null;
    this.pinned = false;
    this.timer = null;
    // Closing returns the focus to the mark, which must not open the card again.
    this.closing = false;

    const hover = { enter: (event) => this.#hovered(event), leave: () => this.#left() };
    mark.addEventListener("pointerenter", hover.enter);
    mark.addEventListener("pointerleave", hover.leave);
    mark.addEventListener("focus", () => {
      if (!this.closing && mark.matches(":focus-visible")) this.#open();
    });
    mark.addEventListener("keydown", (event) => {
      if (event.key === "Tab" && !this.pinned) this.#close();
    });
    mark.addEventListener("focusout", (event) => this.#focusMoved(event));
    mark.addEventListener("click", (event) => this.#pressed(event));
    this.hover = hover;
  }

  #open() {
    clearTimeout(this.timer);
    if (this.card) return;
    this.card = this.#build();
    this.card.addEventListener("pointerenter", () => clearTimeout(this.timer));
    this.card.addEventListener("pointerleave", this.hover.leave);
    this.card.addEventListener("focusout", (event) => this.#focusMoved(event));
    this.mark.after(this.card);
    this.mark.setAttribute("aria-expanded", "true");
    floating.show(this.card, this.mark, { sheet: true, onHide: (reason) => this.#gone(reason) });
  }

  #gone(reason) {
    clearTimeout(this.timer);
    this.closing = reason === "escape" || reason === "closed";
    this.card.remove();
    this.card = null;
    this.pinned = false;
    this.mark.setAttribute("aria-expanded", "false");
    setTimeout(() => (this.closing = false));
  }

  #close() {
    if (this.card) floating.hide("closed");
  }

  #hovered(event) {
    if (event.pointerType !== "mouse") return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#open(), OPEN_AFTER);
  }

  #left() {
    clearTimeout(this.timer);
    if (this.pinned) return;
    this.timer = setTimeout(() => {
      const focused = this.card?.contains(focusedBeside(this.mark)) || this.mark.matches(":focus-visible");
      if (!focused) this.#close();
    }, CLOSE_AFTER);
  }

  #focusMoved(event) {
    const to = event.relatedTarget;
    // Without a new target, the user pressed on plain text or switched windows; keep the card open.
    if (to && to !== this.mark && !this.card?.contains(to)) this.#close();
  }

  #pressed(event) {
    if (this.pinned) {
      this.#close();
      return;
    }
    this.#open();
    this.pinned = true;
    // Only a press from the keyboard moves the focus into the card.
    if (event.detail === 0) this.card.focus();
  }

  #build() {
    const { citation, source } = this;
    const [page, ...headings] = whereabouts(citation, source);
    const { before, after } = cutPassage(citation, source);
    const quote = element("mark", { "data-testid": "citation-quote" }, this.quoted());
    // Paragraphs, lists, code and tables stand alone.
    const isBlock = Boolean(quote.querySelector("p, li, pre, table"));
    quote.classList.toggle("is-blocks", isBlock);
    // Only spans, because the card is inside a paragraph, where block elements are not allowed.
    const passage = element(
      "span",
      { class: "card-passage", "data-testid": "citation-passage" },
      !isBlock && shortenedStart(before),
      quote,
      !isBlock && shortenedEnd(after),
    );
    scrollable(passage, "Passage");
    return element(
      "span",
      {
        class: "card",
        role: "dialog",
        tabindex: "-1",
        "aria-label": `Citation ${citation.id}, ${page}`,
        "data-testid": "citation-card",
      },
      element(
        "span",
        { class: "card-head" },
        element(
          "span",
          { class: "card-where" },
          element("span", { class: "card-page" }, page),
          headings.length > 0 && element("span", { class: "card-path" }, headings.join(" › ")),
        ),
        iconButton("close", "Close", { class: "quiet", click: () => this.#dismiss() }),
      ),
      passage,
      element("span", { class: "card-foot" }, openInBook(citation, source, () => this.#dismiss()), element("span", { class: "module" }, [citation.book_name, citation.module_name, citation.version && `version ${citation.version}`, citation.locale].filter(Boolean).join(" › "))),
    );
  }

  #dismiss() {
    const focused = this.card.contains(focusedBeside(this.mark));
    this.#close();
    if (focused) this.mark.focus();
  }
}

/** Light Markdown as text; of a table or code, which cannot be shown in a line, nothing. */
function plain(markdown) {
  if (/^\s*([|~#>]|\x60{3}|[-*+] |\d+[.)] )/m.test(markdown)) return "";
  return markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[\x60*]/g, "");
}

/** Shortens the text before a quote from the start, between words. It is in the same paragraph. */
function shortenedStart(passage) {
  const text = plain(passage.slice(passage.lastIndexOf("\n\n") + 1));
  if (text.length <= CONTEXT) return text.trimStart();
  return `… ${text.slice(-CONTEXT).replace(/^\S*\s+/, "")}`;
}

/** Shortens the text after a quote at the end, between words. It is in the same paragraph. */
function shortenedEnd(passage) {
  const [paragraph] = passage.split("\n\n", 1);
  const text = plain(paragraph);
  if (text.length <= CONTEXT) return text.trimEnd();
  return `${text.slice(0, CONTEXT).replace(/\s+\S*$/, "")} …`;
}
