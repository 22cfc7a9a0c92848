// Turns the sentences of an answer into paragraphs, lists and code with citation marks.
//
// Invariant: only `sentence.html`, which the server sanitized, is parsed as HTML. Even
// there, images are removed and only http and https links are kept.

import { citationMark } from "./citation.js";
import { bookLink, element, focusedBeside, icon, iconButton, scrollable } from "./elements.js";

const BLOCKS = new Set("P UL OL DL PRE TABLE BLOCKQUOTE H1 H2 H3 H4 H5 H6 HR DIV".split(" "));
let answers = 0;
let policy = null;

/** The body of one answer. */
export class Prose {
  constructor() {
    answers += 1;
    this.name = `answer-${answers}`;
    this.root = element("div", { class: "prose", "data-testid": "prose" });
    // Screen readers read the quote when a mark has the focus; `aria-describedby` may point to hidden text.
    this.quotes = element("div", { hidden: true });
    this.element = element("div", { class: "prose-with-quotes" }, this.root, this.quotes);
    this.texts = [];
  }

  /** Removes everything, before another draft. */
  clear() {
    this.root.replaceChildren();
    this.quotes.replaceChildren();
    this.texts = [];
  }

  /** Whether exactly these sentences are shown. */
  shows(sentences) {
    return sentences.length === this.texts.length && sentences.every((sentence, index) => sentence.text === this.texts[index]);
  }

  /** Appends a sentence and returns its text for screen readers. */
  add(sentence, citations, sources) {
    this.texts.push(sentence.text);
    const content = parse(sentence);
    const heard = content.cloneNode(true);
    // Formulas are read out as their source.
    for (const maths of heard.querySelectorAll("math")) maths.remove();
    const spoken = heard.textContent.trim().replace(/\s+/g, " ");
    const isBlock = [...content.children].some((child) => BLOCKS.has(child.tagName));
    const shown = element(isBlock ? "div" : "span", {
      class: isBlock ? "sentence block" : "sentence",
      "data-testid": "sentence",
      "data-supported": String(sentence.supported),
    });
    const words = element(isBlock ? "div" : "span", { class: "words" }, content);
    shown.append(words);
    const tail = this.#tail(sentence, citations, sources);
    (isBlock ? placeForTail(words) : shown).append(...tail);
    this.#place(shown, isBlock, sentence.new_paragraph);
    if (isBlock) finishBlocks(words);
    return sentence.verdict !== "unsupported" ? spoken : `${spoken} (Not supported by the book.)`;
  }

  #place(shown, isBlock, newParagraph) {
    if (isBlock) {
      this.root.append(shown);
      return;
    }
    const last = this.root.lastElementChild;
    if (!newParagraph && last?.tagName === "P") last.append(" ", shown);
    else this.root.append(element("p", {}, shown));
  }

  #tail(sentence, citations, sources) {
    const marks = sentence.citations
      .map((id) => citations.find((citation) => citation.id === id))
      .filter(Boolean)
      .map((citation) => {
        const source = sources.find((candidate) => candidate.chunk_id === citation.chunk_id);
        return citationMark(citation, source, this.#describe(citation), () => parse({ html: citation.html, text: citation.quote }));
      });
    // The word joiner keeps a mark on the same line as the word before it; the note may wrap.
    const tail = [];
    if (marks.length > 0) tail.push(element("span", { class: "marks" }, "\u2060", marks));
    if (sentence.verdict === "unsupported") tail.push(" ", unsupportedNote());
    return tail;
  }

  #describe(citation) {
    const id = `${this.name}-quote-${citation.id}`;
    if (![...this.quotes.children].some((quote) => quote.id === id)) {
      this.quotes.append(element("span", { id }, citation.quote));
    }
    return id;
  }
}

function unsupportedNote() {
  return element("span", { class: "unsupported", "data-testid": "unsupported" }, icon("warning"), "not supported by the book");
}

function parse(sentence) {
  const template = document.createElement("template");
  const { content } = template;
  const markup = sentence.html && trusted(sentence.html);
  if (!markup) {
    content.append(sentence.text);
    return content;
  }
  template.innerHTML = markup;
  // A single paragraph is an inline sentence; unwrap it.
  if (content.children.length === 1 && content.firstElementChild.tagName === "P" && content.textContent.trim() === content.firstElementChild.textContent.trim()) {
    content.firstElementChild.replaceWith(...content.firstElementChild.childNodes);
  }
  linked(content);
  return content;
}

/** Makes the links of parsed HTML safe, and replaces images except those with `data-own`. */
export function linked(content) {
  // The page must not load images from other servers; show their descriptions instead.
  for (const picture of content.querySelectorAll("img:not([data-own])")) picture.replaceWith(picture.alt);
  for (const link of content.querySelectorAll("a[href]")) link.replaceWith(bookLink(link.getAttribute("href"), {}, ...link.childNodes));
}

/**
 * An author's page may require that HTML comes from an allowed policy (Trusted Types).
 * Null if it does not allow this one.
 */
export function trusted(html) {
  try {
    policy ??= window.trustedTypes?.createPolicy("docent-widget", { createHTML: (text) => text }) ?? { createHTML: (text) => text };
    return policy.createHTML(html);
  } catch {
    return null;
  }
}

/** The element that gets the marks of a block: its last paragraph or list item, or the block itself for code and tables. */
function placeForTail(words) {
  let last = words.lastElementChild;
  while (last && /^(UL|OL|BLOCKQUOTE)$/.test(last.tagName) && last.lastElementChild) last = last.lastElementChild;
  return last && /^(P|LI|H[1-6])$/.test(last.tagName) ? last : words;
}

/** Adds a copy button to code, and makes code and tables scrollable by keyboard. */
export function finishBlocks(words) {
  for (const code of words.querySelectorAll("pre")) {
    const frame = element("div", { class: "code" });
    code.replaceWith(frame);
    const copy = iconButton("copy", "Copy code", { class: "quiet copy-code", click: () => copyText(code.textContent, copy) });
    frame.append(code, copy);
    scrollable(code, "Code");
  }
  for (const table of words.querySelectorAll("table")) {
    const frame = element("div", { class: "table" });
    table.replaceWith(frame);
    frame.append(table);
    scrollable(frame, "Table");
  }
}

/** Copies text, and briefly shows the result on the button. */
export async function copyText(text, button) {
  let copied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copied = copyTheOldWay(text, button);
  }
  if (button.dataset.copied) return copied;
  button.dataset.copied = "true";
  const drawing = button.querySelector(".icon");
  const before = drawing.cloneNode(true);
  const label = button.getAttribute("aria-label");
  const done = icon(copied ? "check" : "warning");
  drawing.replaceWith(done);
  if (label) button.setAttribute("aria-label", copied ? "Copied" : "Could not copy");
  setTimeout(() => {
    delete button.dataset.copied;
    done.replaceWith(before);
    if (label) button.setAttribute("aria-label", label);
  }, 1600);
  return copied;
}

/** Pages without https cannot use the clipboard API; copying from a selected text area still works. */
function copyTheOldWay(text, button) {
  const area = element("textarea", { class: "visually-hidden", "aria-hidden": "true", tabindex: "-1" });
  const focused = focusedBeside(button);
  area.value = text;
  button.after(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return copied;
}
