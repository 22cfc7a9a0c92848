// The quiz: questions about a page, one card at a time, with hints, the answer and the words of the book.
//
// Invariant: a question that was missed comes back until the user knows it, and its section is listed at the end.

import { request, send } from "./api.js";
import { bookLink, element, icon, iconButton } from "./elements.js";
import { finishBlocks, linked, trusted } from "./prose.js";

let styles = null;

/** Opens the quiz about a page. `open` receives the place of a question in the book. */
export async function startQuiz(page, { open }) {
  await (styles ??= loadStyles());
  const quiz = new Quiz(page, open);
  await quiz.start();
}

/** The style sheet is only needed here. Without it the quiz still works. */
function loadStyles() {
  return new Promise((resolve) => document.head.append(element("link", { rel: "stylesheet", href: new URL("quiz.css", import.meta.url), load: resolve, error: resolve })));
}

class Quiz {
  #page;
  #open;
  #dialog;
  #count = element("p", { class: "quiz-count", "data-testid": "quiz-count" });
  #bar = element("progress", { class: "quiz-bar", "aria-label": "Questions you know" });
  #body = element("div", { class: "quiz-body" });
  #actions = element("div", { class: "quiz-actions" });
  #said = element("p", { class: "visually-hidden", role: "status" });
  #cards = [];
  #queue = [];
  #missed = new Set();
  #shown = null;
  #hints = 0;

  constructor(page, open) {
    this.#page = page;
    this.#open = open;
    this.#dialog = element(
      "dialog",
      { class: "quiz", "aria-labelledby": "quiz-title", "data-testid": "quiz", close: () => this.#dialog.remove(), keydown: (event) => this.#onKey(event) },
      element(
        "header",
        { class: "quiz-head" },
        element("div", {}, element("h2", { id: "quiz-title" }, `Quiz: ${page.title}`), this.#count),
        iconButton("close", "Close the quiz", { class: "quiet", "data-testid": "quiz-close", click: () => this.#dialog.close() }),
      ),
      this.#bar,
      this.#body,
      this.#actions,
      this.#said,
    );
  }

  async start() {
    document.body.append(this.#dialog);
    this.#dialog.showModal();
    this.#body.replaceChildren(element("p", { class: "quiz-note" }, "Making questions …"));
    try {
      const { questions } = await request("GET", `quiz?${this.#wanted()}`);
      this.#cards = questions;
    } catch (problem) {
      this.#note(problem.message, "alert");
      return;
    }
    if (this.#cards.length === 0) this.#note("There is nothing to ask about on this page. Questions are made from definitions, lists, steps, tables and commands in English.");
    else this.#begin(this.#cards);
  }

  #wanted() {
    return new URLSearchParams({ page: this.#page.document_id });
  }

  #note(text, role = null) {
    this.#bar.hidden = true;
    this.#body.replaceChildren(element("p", { class: "quiz-note", role, "data-testid": "quiz-note", tabindex: "-1" }, text));
    this.#body.firstElementChild.focus();
  }

  #begin(cards) {
    this.#queue = [...cards];
    this.#missed = new Set();
    this.#bar.max = cards.length;
    this.#ask();
  }

  #ask() {
    const card = (this.#shown = this.#queue[0]);
    this.#hints = 0;
    const left = this.#queue.length;
    this.#bar.value = this.#bar.max - left;
    this.#count.textContent = `${left} of ${this.#bar.max} to go${this.#missed.has(card.id) ? " · once more" : ""}`;
    const question = element("div", { class: "quiz-question", tabindex: "-1", "data-testid": "quiz-question" }, rendered(card.question_html));
    this.#body.replaceChildren(question, element("ul", { class: "quiz-hints", "data-testid": "quiz-hints" }));
    this.#actions.replaceChildren(
      element("button", { type: "button", class: "plain", "data-testid": "quiz-hint", click: () => this.#hint() }, "Hint"),
      element("button", { type: "button", class: "primary", "data-testid": "quiz-reveal", click: () => this.#reveal() }, "Show answer"),
    );
    this.#body.scrollTop = 0;
    question.focus();
  }

  #hint() {
    const text = this.#shown.hints[this.#hints];
    if (!text) return;
    this.#hints += 1;
    this.#body.querySelector(".quiz-hints").append(element("li", {}, text));
    this.#say(`Hint: ${text}`);
    const [button, reveal] = this.#actions.children;
    button.textContent = "Another hint";
    if (this.#hints < this.#shown.hints.length) return;
    if (document.activeElement === button) reveal.focus();
    button.remove();
  }

  #reveal() {
    const card = this.#shown;
    const place = card.heading && card.heading !== card.page_title ? `${card.page_title} › ${card.heading}` : card.page_title;
    const answer = element(
      "section",
      { class: "quiz-answer", tabindex: "-1", "aria-label": "Answer", "data-testid": "quiz-answer" },
      element("div", { class: "quiz-solution" }, rendered(card.answer_html)),
      element("blockquote", { class: "quiz-quote", "data-testid": "quiz-quote" }, rendered(card.quote_html)),
      this.#placeButton(card, place),
    );
    this.#body.querySelector(".quiz-hints").remove();
    this.#body.append(answer);
    finishBlocks(answer);
    this.#actions.replaceChildren(
      element("button", { type: "button", class: "plain", "aria-keyshortcuts": "1", "data-testid": "quiz-knew", click: () => this.#grade(true) }, icon("check"), "I knew it", element("kbd", { "aria-hidden": "true" }, "1")),
      element("button", { type: "button", class: "plain", "aria-keyshortcuts": "2", "data-testid": "quiz-missed", click: () => this.#grade(false) }, icon("retry"), "I missed it", element("kbd", { "aria-hidden": "true" }, "2")),
    );
    answer.focus();
  }

  #grade(knew) {
    const card = this.#queue.shift();
    if (!knew) {
      this.#missed.add(card.id);
      this.#queue.push(card);
    }
    if (this.#queue.length > 0) this.#ask();
    else this.#finish();
  }

  #finish() {
    this.#shown = null;
    const all = this.#bar.max;
    this.#bar.value = all;
    this.#count.textContent = "Done";
    const missed = this.#cards.filter((card) => this.#missed.has(card.id));
    const sections = [...new Map(missed.map((card) => [card.url, card])).values()];
    const result = missed.length === 0 ? `You knew all ${all}.` : `You knew ${all - missed.length} of ${all} right away.`;
    this.#body.replaceChildren(
      element("p", { class: "quiz-result", tabindex: "-1", "data-testid": "quiz-result" }, result),
      ...(sections.length > 0
        ? [element("h3", {}, "Read again"), element("ul", { class: "quiz-sections", "data-testid": "quiz-sections" }, sections.map((card) => element("li", {}, this.#placeButton(card, card.heading ?? card.page_title))))]
        : []),
    );
    this.#actions.replaceChildren(
      iconButton("download", "", { class: "plain", "data-testid": "quiz-anki", click: () => this.#download() }, "Download for Anki"),
      element("button", { type: "button", class: "plain", "data-testid": "quiz-again", click: () => this.#begin(this.#cards) }, "Start again"),
      element("button", { type: "button", class: "primary", click: () => this.#dialog.close() }, "Close"),
    );
    this.#body.firstElementChild.focus();
  }

  /** A link that opens the place of a question in the reading pane. Opened in another tab, it leads to the site. */
  #placeButton(card, name) {
    const here = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      this.#dialog.close();
      this.#open({ document: card.document_id, chunk: card.chunk_id, quote: card.quote, url: card.url });
    };
    const link = bookLink(card.url, { class: "quiz-place", "data-testid": "quiz-place" }, icon("book"), name);
    // A book that is not published has no addresses that can be opened.
    if (link.tagName !== "A") return element("button", { type: "button", class: "quiz-place link", "data-testid": "quiz-place", click: here }, icon("book"), name);
    link.addEventListener("click", here);
    return link;
  }

  async #download() {
    try {
      const response = await send("GET", `quiz?${this.#wanted()}&format=anki`);
      const address = URL.createObjectURL(await response.blob());
      const name = this.#page.title.replace(/[^\p{Letter}\p{Number}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase() || "flashcards";
      element("a", { href: address, download: `${name}.txt` }).click();
      // The download must have started before its URL is revoked.
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
      this.#say("Flashcards downloaded.");
    } catch (problem) {
      this.#body.append(element("p", { role: "alert" }, problem.message));
    }
  }

  #onKey(event) {
    // The dialog closes on Escape by itself; the reading pane below it must not.
    if (event.key === "Escape") event.stopPropagation();
    if (!this.#shown || event.ctrlKey || event.metaKey || event.altKey) return;
    const isRevealed = Boolean(this.#body.querySelector(".quiz-answer"));
    const isOnControl = event.target.closest("button, a, [tabindex='0']");
    if ((event.key === "Enter" || event.key === " ") && !isRevealed && !isOnControl) this.#reveal();
    else if (event.key.toLowerCase() === "h" && !isRevealed) this.#hint();
    else if (event.key === "1" && isRevealed) this.#grade(true);
    else if (event.key === "2" && isRevealed) this.#grade(false);
    else return;
    event.preventDefault();
  }

  #say(text) {
    this.#said.textContent = text;
  }
}

function rendered(html) {
  const template = document.createElement("template");
  template.innerHTML = trusted(html) ?? "";
  linked(template.content);
  return template.content;
}
