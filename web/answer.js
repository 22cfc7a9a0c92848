// One turn on the page: the question, the streamed answer and its actions.
//
// Invariant: in the end, the page shows exactly the final response. Streamed sentences
// that match it are not replaced, so that users do not lose their place.

import { openInBook, whereabouts } from "./citation.js";
import { bookLink, element, icon, iconButton, readableAddress } from "./elements.js";
import { feedbackControls } from "./feedback.js";
import { Prose, copyText } from "./prose.js";

const PROGRESS = {
  received: "Reading your question",
  retrieving: "Searching the book",
  generating: "Writing the answer and checking every sentence",
};
const NO_INFORMATION = "I don't have information about that in the book content.";
// Sections with a lower similarity are not shown as nearest; the server leaves them out too.
const NEAR = 0.05;
const SCOPES = { selection: "From your selection", section: "From this section", book: "From the whole book" };

/**
 * A question and its answer; `announce` sends text to screen readers, `retry` makes another
 * attempt to answer, `again` asks the question once more, `edit` puts it into the question
 * box; `ended` is called when the answer is complete. `selection` is the selected text it is about, `level` the level of its heading.
 * Without `details`, sources and the model's name are left out.
 */
export class Turn {
  constructor(query, { announce, retry, again, edit, ended = () => {}, readOnly = false, selection = null, level = 2, details = true }) {
    this.query = query;
    this.retry = retry;
    this.again = again;
    this.ended = ended;
    this.selection = selection;
    this.level = level;
    this.details = details;
    /** Whether the conversation was shared by somebody else. */
    this.readOnly = readOnly;
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
      selection && element("blockquote", { class: "selected" }, selection.text),
      element(
        "div",
        { class: "question" },
        element(`h${level}`, { class: "asked", "data-testid": "asked" }, query),
        !readOnly && iconButton("rename", "Edit this question", { class: "quiet edit", "data-testid": "edit", click: () => edit(this) }),
      ),
      this.answer,
    );
  }

  /** Resets the turn before its first attempt or a retry. */
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

  /** Handles one event of the stream. */
  receive(event, data) {
    if (event === "state" && PROGRESS[data.state]) this.#showProgress(PROGRESS[data.state]);
    else if (event === "sources") this.sources = data.sources ?? [];
    else if (event === "restart") this.prose.clear();
    else if (event === "sentence") this.announce(this.prose.add(data.sentence, data.citations ?? [], this.sources));
    else if (event === "done") this.finish(data, true);
  }

  /** Shows the complete answer. `live` if it was streamed just now. */
  finish(response, live = false) {
    this.sources = response.sources ?? this.sources;
    const stopped = response.kind === "stopped";
    const abstained = !stopped && !response.grounded && response.sentences.length === 0;
    if (abstained) {
      this.prose.clear();
    } else if (!this.prose.shows(response.sentences)) {
      this.prose.clear();
      for (const sentence of response.sentences) this.prose.add(sentence, response.citations, this.sources);
    }
    if (stopped) {
      this.#endStopped();
      return;
    }
    this.#settle(abstained ? "abstained" : "complete");
    this.badges.replaceChildren(...badgesFor(response, this.selection));
    this.after.replaceChildren(
      ...[
        response.error && element("p", { class: "aside", "data-testid": "answer-note" }, response.error),
        response.rewritten_query &&
          element("p", { class: "aside", "data-testid": "searched" }, `Searched for: ${response.rewritten_query}`),
        abstained && nearestSections(response, this.sources, this.level + 1),
        this.details && !abstained && sourceList(response, this.sources),
        this.#actions(response),
      ].filter(Boolean),
    );
    if (live) this.announce(summary(response, abstained));
    this.ended(this, response, live);
  }

  /** The user stopped the answer; the sentences received so far stay. */
  stopped() {
    this.#endStopped();
    this.announce("Stopped.");
  }

  #endStopped() {
    this.#settle("stopped");
    const again = iconButton("retry", "Ask again", { class: "plain", "data-testid": "retry", click: () => this.retry(this) }, "Ask again");
    this.after.replaceChildren(
      element("p", { class: "aside", "data-testid": "stopped" }, element("span", {}, "Stopped before the end."), !this.readOnly && again),
    );
  }

  /** Shows an error and a retry button. */
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
        // Only the message is an alert, so that screen readers do not read out the countdown on the button.
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
    const again = !this.readOnly && iconButton("retry", "Ask again", { class: "quiet", "data-testid": "again", click: () => this.again(this) });
    const feedback = feedbackControls(response.turn_id);
    return element(
      "div",
      { class: "actions" },
      element("div", { class: "actions-row" }, copy, again, feedback.buttons, this.details && element("span", { class: "provenance" }, provenance(response))),
      feedback.form,
    );
  }
}

function badge(kind, drawing, text) {
  return element("span", { class: "badge", "data-testid": "badge", "data-kind": kind }, icon(drawing), text);
}

function badgesFor(response, selection) {
  const badges = [];
  // Small talk has no badge.
  if (response.kind === "conversation") return badges;
  if (!response.grounded) badges.push(badge("absent", "absent", "Not in the book"));
  else if (response.confidence === "high") badges.push(badge("book", "book", "From the book"));
  else badges.push(badge("low", "book", "From the book, loosely related"));
  if (response.degraded) badges.push(badge("degraded", "unplugged", "Answered without the model"));
  // Without a selection, "from the whole book" would say nothing new.
  const scope = (selection || response.scope !== "book") && response.grounded && SCOPES[response.scope];
  if (scope) badges.push(badge("scope", "link", scope));
  return badges;
}

function summary(response, abstained) {
  if (abstained) return abstention(response);
  if (response.kind === "conversation") return "";
  const count = response.citations.length;
  const sources = count === 1 ? "1 citation" : `${count} citations`;
  return `Answer complete, ${sources}.${response.degraded ? " Answered without the model." : ""}`;
}

function provenance(response) {
  // An abstention, or a reply to a greeting, quotes nothing.
  const quotes = response.citations.length > 0 ? "Quoted from the book" : "";
  const writer = response.model_used === "extractive" ? quotes : response.model_used;
  const milliseconds = response.metadata?.response_time_ms;
  if (!Number.isFinite(milliseconds) || milliseconds <= 0) return writer;
  const took = milliseconds < 1000 ? `${Math.max(1, Math.round(milliseconds))} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
  return [writer, took].filter(Boolean).join(" · ");
}

/** The first paragraph of the answer; the sections that follow are shown as a list instead. */
function abstention(response) {
  return (response.answer ?? "").split(/\n\s*\n/)[0].trim() || NO_INFORMATION;
}

function nearestSections(response, sources, level) {
  const firstAtItsAddress = (source, index) => sources.findIndex((other) => other.url === source.url) === index;
  const isNear = (source) => Number(source.similarity_score) >= NEAR;
  const nearest = sources.filter(firstAtItsAddress).filter(isNear).slice(0, 3);
  const covers = (response.answer ?? "").split(/\n\s*\n/).slice(1).find((part) => part.startsWith("The book covers:"));
  return element(
    "div",
    { class: "abstention" },
    element("p", { class: "lead", "data-testid": "abstention" }, abstention(response)),
    nearest.length === 0 && covers && element("p", { "data-testid": "contents" }, covers),
    nearest.length > 0 && element(`h${level}`, { class: "subheading" }, "The nearest sections"),
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
            openInBook(citation, source),
          ),
        );
      }),
    ),
    others.length > 0 && element("h3", { class: "subheading" }, "Also considered"),
    others.length > 0 &&
      element(
        "ul",
        { class: "others" },
        others.map((source) => element("li", {}, bookLink(source.url, {}, source.breadcrumb.split(" > ").join(" › ")))),
      ),
  );
}
