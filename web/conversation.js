// The open conversation: creates it on the server with its first question, and asks.
//
// Invariant: at most one answer is being written at a time; leaving the conversation
// stops it.

import { Problem, ask, createSession } from "./api.js";

export class Conversation {
  /** `id`, `key` and `readOnly`; null before the first question. */
  session = null;
  #answering = null;
  #composer;
  #callbacks;

  /**
   * The callback `details` returns what is sent with the question of a turn, or a promise of it. `changed` is
   * called when another conversation is open, and `failed` with problems. Optional: `asked`
   * is called when the server has stored a turn, `gone` when it no longer has the
   * conversation.
   */
  constructor(composer, callbacks) {
    this.#composer = composer;
    this.#callbacks = callbacks;
  }

  /** Leaves the open conversation for another one; null stands for a new conversation. */
  switchTo(session) {
    this.stop();
    this.#end(this.#answering);
    this.#open(session);
  }

  /** Stops the answer that is being written, if any. */
  stop() {
    this.#answering?.abort();
  }

  /** Sends the question of a turn; called again when the user retries. */
  async answer(turn) {
    if (this.#answering) return;
    const mine = (this.#answering = new AbortController());
    const { signal } = mine;
    this.#composer.setBusy(true);
    turn.begin();
    try {
      if (!this.session) {
        const { session_id, session_key } = await createSession(signal);
        this.#open({ id: session_id, key: session_key, readOnly: false });
      }
      const question = { query: turn.query, session_id: this.session.id, ...(await this.#callbacks.details(turn)) };
      await ask(question, {
        signal,
        sessionKey: this.session.key,
        onEvent: (event, data) => {
          if (this.#answering !== mine) return;
          turn.receive(event, data);
          if (event === "done") this.#callbacks.asked?.(turn);
        },
      });
    } catch (problem) {
      this.#end(mine);
      if (!signal.aborted) {
        await this.#failed(turn, problem);
      } else if (turn.element.isConnected) {
        // Otherwise the user has left the conversation, and the turn is no longer on the page.
        turn.stopped();
        // The server keeps the question and the partial answer.
        if (this.session) this.#callbacks.asked?.(turn);
      }
    } finally {
      this.#end(mine);
    }
  }

  #open(session) {
    this.session = session;
    this.#callbacks.changed(session);
  }

  #end(attempt) {
    if (this.#answering !== attempt) return;
    this.#answering = null;
    this.#composer.setBusy(false);
  }

  #failed(turn, problem) {
    if (problem.status !== 404 || !this.session) return this.#callbacks.failed(turn, problem);
    const { id } = this.session;
    this.#open(null);
    this.#callbacks.gone?.(id);
    turn.failed(new Problem("The server no longer has this conversation. Trying again starts a new one.", { code: problem.code }));
  }
}
