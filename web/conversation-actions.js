// What the user can do with a conversation in the list: rename, export, share, delete.
//
// The chat page loads this script when a menu is opened for the first time.
//
// Invariant: the list in this browser changes only after the server has done its part.

import { deleteSession, exportSession, renameSession, shareSession, unshareSession } from "./api.js";
import { element } from "./elements.js";

export class ConversationActions {
  /** `list` is the list in the sidebar. */
  constructor(list) {
    this.list = list;
    this.store = list.store;
  }

  rename(row, conversation) {
    const { id, title } = conversation;
    const input = element("input", { type: "text", maxlength: "120", "aria-label": "Name of the conversation", "data-testid": "rename-input" });
    input.value = title;
    let finished = false;
    const finish = async (save) => {
      if (finished) return;
      finished = true;
      const name = input.value.trim();
      const focused = document.activeElement === input;
      if (save && name && name !== title) {
        try {
          await renameSession(conversation, name);
          this.store.rename(id, name);
        } catch (problem) {
          if (!this.#isGone(id, problem)) this.list.notify(`The conversation could not be renamed. ${problem.message}`);
        }
      }
      this.list.draw();
      if (focused) this.list.rowOf(id)?.querySelector(".more").focus();
    };
    const form = element("form", { class: "rename", submit: (event) => {
      event.preventDefault();
      finish(true);
    } }, input);
    input.addEventListener("blur", () => finish(true));
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      finish(false);
    });
    row.replaceChildren(form);
    input.focus();
    input.select();
  }

  async export(conversation, format, extension) {
    const { id, title } = conversation;
    try {
      const file = await exportSession(conversation, format);
      const address = URL.createObjectURL(file);
      const name = title.replace(/[^\p{Letter}\p{Number}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase() || "conversation";
      element("a", { href: address, download: `${name}.${extension}` }).click();
      // The download must have started before its URL is revoked.
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
    } catch (problem) {
      if (!this.#isGone(id, problem)) this.list.notify(`The conversation could not be exported. ${problem.message}`);
    }
  }

  /** Copies a read-only link. The key is in the fragment, which browsers do not send to the server. */
  async copyLink(conversation) {
    const { id, readOnly } = conversation;
    let key = readOnly ? conversation.key : conversation.share;
    if (!key) {
      try {
        key = (await shareSession(conversation)).share_key;
        this.store.setShare(id, key);
      } catch (problem) {
        if (!this.#isGone(id, problem)) this.list.notify(`The conversation could not be shared. ${problem.message}`);
        return;
      }
    }
    const address = new URL(`?session=${encodeURIComponent(id)}#key=${encodeURIComponent(key)}`, document.baseURI);
    try {
      await navigator.clipboard.writeText(address.href);
      this.list.notify("Link copied. Anyone with the link can read this conversation, but not change it.");
    } catch {
      this.list.notify(`Read-only link to this conversation: ${address.href}`);
    }
  }

  async stopSharing(conversation) {
    try {
      await unshareSession(conversation);
      this.store.setShare(conversation.id, undefined);
      this.list.notify("The links to this conversation no longer work.");
    } catch (problem) {
      if (!this.#isGone(conversation.id, problem)) this.list.notify(`The conversation is still shared. ${problem.message}`);
    }
  }

  /** Removes somebody else's conversation from the list; the server keeps it. */
  forget({ id }) {
    this.store.remove(id);
    this.list.removed(id);
  }

  async delete(row, conversation) {
    const { id, title } = conversation;
    const sure = await this.list.confirm({
      heading: "Delete this conversation?",
      text: `“${title}” will be deleted from the server. This cannot be undone.`,
      action: "Delete",
    });
    if (!sure) return;
    const neighbor = row.nextElementSibling ?? row.previousElementSibling;
    try {
      await deleteSession(conversation);
    } catch (problem) {
      if (problem.status !== 404) {
        this.list.notify(`The conversation could not be deleted. ${problem.message}`);
        return;
      }
    }
    this.store.remove(id);
    this.list.removed(id);
    this.list.rowOf(neighbor?.dataset.id)?.querySelector(".title").focus();
    this.list.notify("Conversation deleted.");
  }

  /** If the server no longer has the conversation, removes it from the list and tells the user. */
  #isGone(id, problem) {
    if (problem.status !== 404) return false;
    this.store.remove(id);
    this.list.removed(id);
    this.list.notify("The server no longer has that conversation, so it was removed from your list.");
    return true;
  }
}
