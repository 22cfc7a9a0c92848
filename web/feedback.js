// Thumbs up or down for an answer, with an optional comment.
//
// Invariant: the rating is sent when a thumb is pressed; a comment is sent separately,
// with the same rating.

import { sendFeedback } from "./api.js";
import { element, focusedBeside, iconButton } from "./elements.js";

/** The two buttons, and the form that opens below them. */
export function feedbackControls(turnId) {
  let rating = null;
  const note = element("p", { class: "note", role: "status", "data-testid": "feedback-note" });
  const comment = element("textarea", {
    rows: "2",
    maxlength: "2000",
    "data-testid": "feedback-comment",
    "aria-label": "Comment on this answer (optional)",
  });
  const fields = element(
    "div",
    { class: "feedback-fields", hidden: true },
    comment,
    element("button", { type: "submit", class: "plain", "data-testid": "feedback-send" }, "Send comment"),
    element("button", { type: "button", class: "plain faint", click: () => close() }, "No comment"),
  );
  const form = element("form", { class: "feedback", submit: (event) => submitComment(event) }, note, fields);
  const up = thumb("up", "Good answer");
  const down = thumb("down", "Bad answer");
  return { buttons: [up, down], form };

  function thumb(value, label) {
    return iconButton(value, label, {
      class: "quiet",
      "aria-pressed": "false",
      "data-testid": `feedback-${value}`,
      click: () => rate(value),
    });
  }

  async function rate(value) {
    rating = value;
    up.setAttribute("aria-pressed", String(value === "up"));
    down.setAttribute("aria-pressed", String(value === "down"));
    comment.placeholder = value === "up" ? "What was good about it? (optional)" : "What was wrong or missing? (optional)";
    fields.hidden = false;
    await deliver({ turn_id: turnId, rating }, "Thank you.");
  }

  async function submitComment(event) {
    event.preventDefault();
    const text = comment.value.trim();
    if (!text) {
      close();
      return;
    }
    if (await deliver({ turn_id: turnId, rating, comment: text }, "Thank you, your comment was sent.")) close();
  }

  async function deliver(feedback, thanks) {
    try {
      await sendFeedback(feedback);
      note.textContent = thanks;
      return true;
    } catch (problem) {
      note.textContent = `Your feedback could not be sent. ${problem.message}`;
      return false;
    }
  }

  function close() {
    const focused = fields.contains(focusedBeside(fields));
    fields.hidden = true;
    comment.value = "";
    if (focused) (rating === "up" ? up : down).focus();
  }
}
