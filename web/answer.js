// One turn on the page: the question, the answer as it arrives, and what to do with it.
//
// Invariant: what is shown at the end is what the final response says. Sentences that
// streamed in stay untouched when they match it, so that nobody reading loses their place.

import { openInBook, whereabouts } from "./citation.js";
import { bookLink, element, icon, iconButton, readableAddress } from "./elements.js";
import { feedbackControls } from "./feedback.js";
import { Prose, copyText } from "./prose.js";

const PROGRESS = {
  received: "Reading your question",
  validating: "Reading your question",
  retrieving: "Searching the book",
  generating: "Writing, and checking every sentence",
};
const NO_INFORMATION = "I don't have information about that in the book content.";
const SCOPES = { selection: "From your selection", section: "From this section" };

/** A question and its answer; `retry` asks it again, `announce` speaks to screen readers. */
export class Turn {
  constructor(query, { retry, announce }) {
    this.query = query;
    this.retry = retry;
    this.announce = announce;
    this.sources = [];
    this.countdown = null;
    this.prose = new Prose();
    this.badges = element("div", { class: "badges" });
    this.progress = element("p", { class: "progress", "data-testid": "progress" });
    this.after = element("div", { class: "after" });
    this.answer = element("div", { class: "answer", "data-testid": "answer" }, this.progress, this.badges, this.prose.element, this.after);
    this.element = element(
      "article",
      { class: "turn", "data-testid": "turn" },
      element("h2", { class: "asked", "data-testid": "asked" }, query),
      this.answer,
    );
  }

  /** Nothing has arrived yet; also the way back from a failed attempt. */
  begin() {
    clearInterval(this.countdown);
    this.sources = [];
    this.prose.clear();
    this.badges.replaceChildren();
    this.after.replaceChildren();
    this.answer.dataset.state = "answering";
    this.answer.setAttribute("aria-busy", "true");
    this.#showProgress(PROGRESS.received);
  }

  /** One event of the stream. */
  receive(event, data) {
    if (event === "state" && PROGRESS[data.state]) this.#showProgress(PROGRESS[data.state]);
    else if (event === "sources") this.sources = data.sources ?? [];
    else if (event === "restart") this.prose.clear();
    else if (event === "sentence") this.announce(this.prose.add(data.sentence, data.citations ?? [], this.sources));
    else if (event === "done") this.finish(data, true);
  }

  /** The whole answer is known. `live` when the reader saw it arrive. */
  finish(response, live = false) {
    this.sources = response.sources ?? this.sources;
    const abstained = !response.grounded && response.sentences.length === 0;
    if (abstained) {
      this.prose.clear();
    } else if (!this.prose.shows(response.sentences)) {
      this.prose.clear();
      for (const sentence of response.sentences) this.prose.add(sentence, response.citations, this.sources);
    }
    this.#settle(abstained ? "abstained" : "complete");
    this.badges.replaceChildren(...badgesFor(response));
    this.after.replaceChildren(
      ...[
        response.error && element("p", { class: "aside", "data-testid": "answer-note" }, response.error),
        abstained && nearestSections(response, this.sources),
        !abstained && sourceList(response, this.sources),
        this.#actions(response),
      ].filter(Boolean),
    );
    if (live) this.announce(summary(response, abstained));
  }

  /** The reader stopped the answer; what has arrived stays. */
  stopped() {
    this.#settle("stopped");
    this.after.replaceChildren(
      element(
        "p",
        { class: "aside", "data-testid": "stopped" },
        element("span", {}, "Stopped before the end."),
        iconButton("retry", "Ask again", { class: "plain", "data-testid": "retry", click: () => this.retry(this) }, "Ask again"),
      ),
    );
    this.announce("Stopped.");
  }

  /** Something went wrong; says what, and offers another try when it may help. */
  failed(problem) {
    this.#settle("failed");
    const retry = iconButton("retry", "Try again", { class: "plain", "data-testid": "retry", click: () => {
      if (retry.getAttribute("aria-disabled") !== "true") this.retry(this);
    } }, "Try again");
    this.after.replaceChildren(
      element(
        "div",
        { class: "problem", "data-testid": "error", "data-code": problem.code },
        icon("warning"),
        // The words alone are the alert; the button counts seconds, which nobody wants read out.
        element("p", { role: "alert" }, problem.message),
        retry,
      ),
    );
    if (problem.retryAfter) this.#countDown(retry, problem.retryAfter);
  }

  #countDown(button, seconds) {
    const label = button.querySelector("span");
    let left = seconds;
    const tick = () => {
      button.setAttribute("aria-disabled", String(left > 0));
      label.textContent = left > 0 ? `Try again in ${left} s` : "Try again";
      if (left <= 0) clearInterval(this.countdown);
      left -= 1;
    };
    tick();
    this.countdown = setInterval(tick, 1000);
  }

  #showProgress(text) {
    this.progress.replaceChildren(element("span", { class: "pulse", "aria-hidden": "true" }), text);
    this.progress.hidden = false;
  }

  #settle(state) {
    this.progress.hidden = true;
    this.answer.dataset.state = state;
    this.answer.removeAttribute("aria-busy");
  }

  #actions(response) {
    const copy = iconButton("copy", "Copy answer as Markdown", {
      class: "quiet",
      "data-testid": "copy",
      click: async () => this.announce((await copyText(response.answer, copy)) ? "Answer copied." : "The answer could not be copied."),
    });
    const feedback = feedbackControls(response.turn_id);
    return element(
      "div",
      { class: "actions" },
      element("div", { class: "actions-row" }, copy, feedback.buttons, element("span", { class: "provenance" }, provenance(response))),
      feedback.form,
    );
  }
}

function badge(kind, drawing, text) {
  return element("span", { class: "badge", "data-testid": "badge", "data-kind": kind }, icon(drawing), text);
}

function badgesFor(response) {
  const badges = [];
  if (!response.grounded) badges.push(badge("absent", "absent", "Not in the book"));
  else if (response.confidence === "high") badges.push(badge("book", "book", "From the book"));
  else badges.push(badge("low", "book", "From the book, loosely related"));
  if (response.degraded) badges.push(badge("degraded", "unplugged", "Answered without the model"));
  if (SCOPES[response.scope]) badges.push(badge("scope", "link", SCOPES[response.scope]));
  return badges;
}

function summary(response, abstained) {
  if (abstained) return `${abstention(response)} The nearest sections are listed.`;
  const count = response.citations.length;
  const sources = count === 1 ? "1 citation" : `${count} citations`;
  return `Answer complete, ${sources}.${response.degraded ? " Answered without the model." : ""}`;
}

function provenance(response) {
  const writer = response.model_used === "extractive" ? "The book’s own words" : response.model_used;
  const milliseconds = response.metadata?.response_time_ms;
  if (!Number.isFinite(milliseconds) || milliseconds <= 0) return writer;
  const took = milliseconds < 1000 ? `${Math.max(1, Math.round(milliseconds))} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
  return [writer, took].filter(Boolean).join(" · ");
}

/** The answer's own first paragraph; the sections that follow it are drawn, not repeated. */
function abstention(response) {
  return (response.answer ?? "").split(/\n\s*\n/)[0].trim() || NO_INFORMATION;
}

function nearestSections(response, sources) {
  const firstAtItsAddress = (source, index) => sources.findIndex((other) => other.url === source.url) === index;
  const nearest = sources.filter(firstAtItsAddress).slice(0, 3);
  return element(
    "div",
    { class: "abstention" },
    element("p", { class: "lead", "data-testid": "abstention" }, abstention(response)),
    nearest.length > 0 && element("h3", {}, "The nearest sections"),
    nearest.length > 0 &&
      element(
        "ol",
        { class: "nearest", "data-testid": "nearest" },
        nearest.map((source) =>
          element(
            "li",
            { "data-testid": "nearest-section" },
            bookLink(source.url, { class: "where" }, source.breadcrumb.split(" > ").join(" › ")),
            element("span", { class: "address" }, readableAddress(source.url)),
            element("span", { class: "score" }, `similarity ${Number(source.similarity_score).toFixed(2)}`),
          ),
        ),
      ),
  );
}

function sourceList(response, sources) {
  const cited = new Set(response.citations.map((citation) => citation.chunk_id));
  const others = sources.filter((source) => !cited.has(source.chunk_id));
  if (cited.size === 0 && others.length === 0) return null;
  return element(
    "details",
    { class: "sources", "data-testid": "sources" },
    element("summary", {}, `Sources (${response.citations.length})`),
    element(
      "ol",
      {},
      response.citations.map((citation) => {
        const source = sources.find((candidate) => candidate.chunk_id === citation.chunk_id);
        return element(
          "li",
          { "data-testid": "source" },
          element("span", { class: "number", "aria-hidden": "true" }, String(citation.id)),
          element(
            "div",
            {},
            element("p", { class: "where" }, whereabouts(citation, source).join(" › ")),
            element("blockquote", {}, citation.quote),
            openInBook(citation.url),
          ),
        );
      }),
    ),
    others.length > 0 && element("h3", {}, "Also considered"),
    others.length > 0 &&
      element(
        "ul",
        { class: "others" },
        others.map((source) => element("li", {}, bookLink(source.url, {}, source.breadcrumb.split(" > ").join(" › ")))),
      ),
  );
}
