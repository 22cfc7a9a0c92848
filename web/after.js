// What follows an answer: the figures that it cites, and suggested questions.
//
// The chat page loads this script after the first answer.
//
// Invariant: a figure is shown only if the server has a copy of it; nothing is requested from another server.

import { loadSuggestions } from "./api.js";
import { citationMark } from "./citation.js";
import { bookLink, element, icon } from "./elements.js";

const FIGURES = "/read/.figure/";
const MOST_FIGURES = 3;
const MOST_QUESTIONS = 3;

/** The address of the server's copy of an image; null if it has none. */
export function ownImage(image) {
  const at = image.indexOf(FIGURES);
  return at < 0 ? null : new URL(`.${image.slice(at)}`, document.baseURI).href;
}

/** Shows the figures of the citations below the text of the answer, each with its caption and the mark of its citation. */
export function showFigures(turn, response) {
  turn.answer.querySelector(".figures")?.remove();
  const figures = response.citations.flatMap((citation) => (citation.figures ?? []).map((figure) => ({ ...figure, citation })));
  const distinct = figures.filter((one, index) => figures.findIndex((other) => other.image === one.image) === index).slice(0, MOST_FIGURES);
  const below = distinct.filter((figure) => !showInPlace(turn, figure)).map((figure) => figureElement(figure, ownCaption(figure, turn.sources)));
  if (below.length > 0) turn.after.before(element("div", { class: "figures" }, below));
}

/** A caption that is a paragraph of the answer gets its image there. */
function showInPlace(turn, figure) {
  const isCaption = (paragraph) => {
    const words = paragraph.cloneNode(true);
    words.querySelector(".marks")?.remove();
    return words.textContent.trim() === figure.caption;
  };
  const paragraph = [...turn.prose.root.querySelectorAll("p")].find(isCaption);
  paragraph?.replaceWith(figureElement(figure, [...paragraph.childNodes]));
  return Boolean(paragraph);
}

/** The caption with the mark of its citation. */
function ownCaption({ caption, image, citation }, sources) {
  const source = sources.find((candidate) => candidate.chunk_id === citation.chunk_id);
  const words = ownImage(image) ? element("span", {}, caption) : bookLink(image, {}, caption, icon("outside"));
  return [words, "\u2060", citationMark(citation, source)];
}

function figureElement({ caption, image }, words) {
  const address = ownImage(image);
  const shown = address && element("a", { href: address, target: "_blank", rel: "noopener" }, element("img", { src: address, alt: caption, loading: "lazy" }));
  const figure = element("figure", { "data-testid": "figure" }, shown, element("figcaption", {}, words));
  // Without the image, its caption still stands.
  shown?.firstChild.addEventListener("error", () => shown.remove());
  return figure;
}

/** Offers questions about the sections after the cited one; those that were asked in `thread` already are left out. */
export async function offerNext(turn, response, thread, ask) {
  const [first] = response.citations;
  const source = turn.sources.find((candidate) => candidate.chunk_id === first?.chunk_id);
  if (!source) return;
  const near = { page: source.document_id, ...(first.heading && { heading: first.heading }) };
  // They are optional.
  const { questions } = await loadSuggestions(MOST_QUESTIONS + 1, near).catch(() => ({ questions: [] }));
  const same = (text) => text.toLowerCase().replace(/\W+/g, " ").trim();
  const asked = new Set([...thread.querySelectorAll(".asked")].map((one) => same(one.textContent)));
  const open = questions.filter((question) => !asked.has(same(question))).slice(0, MOST_QUESTIONS);
  if (open.length === 0 || turn.after.querySelector(".ask-next")) return;
  const row = (question) => element("li", {}, element("button", { type: "button", "data-testid": "next-question", click: () => ask(question) }, question));
  turn.after.append(element("nav", { class: "ask-next", "aria-label": "Suggested questions" }, element("p", { class: "subheading" }, "Ask next"), element("ul", {}, open.map(row))));
}
