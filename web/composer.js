// The input box for questions.
//
// Invariant: a question is sent only if it has 1 to 8000 characters and no answer is
// being written; otherwise it stays in the box, unchanged.

import { element, focusedBeside, iconButton } from "./elements.js";

const LIMIT = 8000;
const NEAR_LIMIT = 7000;

export class Composer {
  /**
   * `form` contains the elements used below; the note is optional.
   * `onAsk` receives the question and the selected text that it is about, `onStop` nothing.
   */
  constructor(form, { onAsk, onStop }) {
    this.form = form;
    this.onAsk = onAsk;
    this.question = form.querySelector("#question");
    this.count = form.querySelector("#question-count");
    this.chip = form.querySelector("#selection");
    this.placeholder = this.question.placeholder;
    /** The selected text that the next question is about; null for none. */
    this.selection = null;
    this.sendButton = form.querySelector("#send");
    this.stopButton = form.querySelector("#stop");
    this.box = form.querySelector(".composer-box");
    this.readOnlyNote = form.querySelector("#read-only");
    this.busy = false;
    /** The last question of the conversation, which the up arrow brings back. */
    this.last = "";

    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.question.addEventListener("keydown", (event) => this.#onKey(event));
    this.question.addEventListener("input", () => this.#changed());
    this.stopButton.addEventListener("click", onStop);
    this.#changed();
  }

  /** What to search; everything unless the user has chosen a part of the book (`part.js`). */
  get chosenPart() {
    return this.part?.chosen ?? {};
  }

  /** While an answer is being written, the send button becomes a stop button. */
  setBusy(busy) {
    const focused = [this.sendButton, this.stopButton].includes(focusedBeside(this.form));
    this.busy = busy;
    this.sendButton.hidden = busy;
    this.stopButton.hidden = !busy;
    if (focused) (busy ? this.stopButton : this.question).focus();
  }

  /** A conversation shared by somebody else can be read, but not continued. */
  setReadOnly(readOnly) {
    this.box.hidden = readOnly;
    this.readOnlyNote.hidden = !readOnly;
  }

  focus() {
    this.question.focus({ preventScroll: true });
  }

  /** Asks the next question about this text. */
  select(chosen) {
    this.#select(chosen);
    // If the box already had the focus, the caret would stay in the page's selection.
    this.question.blur();
    this.focus();
  }

  #select(chosen) {
    this.selection = chosen;
    this.chip.hidden = !chosen;
    this.question.placeholder = chosen ? "Ask about the selected text" : this.placeholder;
    const remove = () => {
      this.#select(null);
      this.focus();
    };
    this.chip.replaceChildren(...(chosen ? [element("q", {}, chosen.text), iconButton("close", "Remove the selection", { class: "quiet", "data-testid": "selection-remove", click: remove })] : []));
  }

  /** Puts a question into the box, with the cursor at its end. */
  fill(text, selection = this.selection) {
    this.#select(selection);
    this.question.value = text;
    this.#changed();
    this.focus();
  }

  /** Sends a question, or puts it into the box if it cannot be sent now. */
  ask(text, selection = this.selection) {
    if (this.#canSend(text.trim())) this.#send(text.trim(), selection);
    else this.fill(text, selection);
  }

  #canSend(text) {
    return !this.busy && text !== "" && lengthOf(text) <= LIMIT;
  }

  #send(text, selection) {
    this.last = text;
    this.#select(null);
    this.onAsk(text, selection);
  }

  #onKey(event) {
    // While an input method is composing, Enter accepts its suggestion.
    if (event.isComposing || event.shiftKey) return;
    const recalls = event.key === "ArrowUp" && this.question.value === "" && this.last;
    if (event.key !== "Enter" && !recalls) return;
    event.preventDefault();
    if (recalls) this.fill(this.last);
    else this.#submit();
  }

  #submit() {
    const text = this.question.value.trim();
    if (!this.#canSend(text)) return;
    this.question.value = "";
    this.#changed();
    this.#send(text, this.selection);
  }

  #changed() {
    const length = lengthOf(this.question.value.trim());
    const over = length > LIMIT;
    this.count.textContent = length >= NEAR_LIMIT ? `${length} of ${LIMIT}${over ? ", too long" : ""}` : "";
    this.count.classList.toggle("over", over);
    this.question.setAttribute("aria-invalid", String(over));
    // Not `disabled`, because a disabled button loses the focus.
    this.sendButton.setAttribute("aria-disabled", String(length === 0 || over));
    this.question.style.height = "auto";
    this.question.style.height = `${Math.min(this.question.scrollHeight, window.innerHeight * 0.35)}px`;
  }
}

/** Characters as the server counts them: code points, not UTF-16 units. */
function lengthOf(text) {
  return [...text].length;
}
