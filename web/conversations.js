// The user's conversations, stored in this browser and listed in the sidebar.
//
// A conversation can only be opened with its key, which the server does not store. This
// browser keeps the key; if it is lost, the user can no longer open the conversation.
//
// Invariant: the sidebar always shows the stored list, even if another tab changes it.

import { element, iconButton } from "./elements.js";
import * as floating from "./floating.js";

const KEY = "docent.conversations";
const KEPT = 200;

/**
 * Conversations, newest first: `id`, `title`, `key`, `share` (the read-only key, if it was shared) and `readOnly`
 * (whether `key` is a read-only key that somebody else shared).
 */
export class ConversationStore extends EventTarget {
  constructor() {
    super();
    this.list = read();
    window.addEventListener("storage", (event) => {
      if (event.key !== KEY && event.key !== null) return;
      this.list = read();
      this.dispatchEvent(new Event("change"));
    });
  }

  find(id) {
    return this.list.find((conversation) => conversation.id === id);
  }

  /** Moves a conversation to the top; keeps its title if it already has one. */
  touch({ id, key, readOnly = false }, title) {
    const known = this.find(id);
    // A read-only link to the user's own conversation must not replace its key.
    const opens = known?.key && !known.readOnly ? known : { ...known, key, readOnly };
    const rest = read().filter((conversation) => conversation.id !== id);
    this.#write([{ ...opens, id, title: known?.title || shortTitle(title) }, ...rest].slice(0, KEPT));
  }

  rename(id, title) {
    this.#change(id, { title: shortTitle(title) });
  }

  /** Stores the read-only key; undefined if the conversation is no longer shared. */
  setShare(id, share) {
    this.#change(id, { share });
  }

  #change(id, changes) {
    this.#write(read().map((conversation) => (conversation.id === id ? { ...conversation, ...changes } : conversation)));
  }

  remove(id) {
    this.#write(read().filter((conversation) => conversation.id !== id));
  }

  #write(list) {
    this.list = list;
    try {
      localStorage.setItem(KEY, JSON.stringify(list));
    } catch {
      memory = list; // Storage is full or blocked; the list lasts until the page is closed.
    }
    this.dispatchEvent(new Event("change"));
  }
}

/** Renders the store into `list`; `open`, `removed`, `notify` and `confirm` are callbacks of the page. */
export class ConversationList {
  constructor(list, store, { open, removed, notify, confirm }) {
    this.root = list;
    this.store = store;
    this.open = open;
    this.removed = removed;
    this.notify = notify;
    this.confirm = confirm;
    this.current = null;
    store.addEventListener("change", () => this.draw());
    this.draw();
  }

  select(id) {
    this.current = id;
    for (const row of this.root.children) mark(row, row.dataset.id === id);
  }

  draw() {
    floating.hide("redrawn");
    this.root.replaceChildren(...this.store.list.map((conversation) => this.#row(conversation)));
    if (this.store.list.length === 0) {
      this.root.append(element("li", { class: "none" }, "Your conversations will be listed here, in this browser only."));
    }
  }

  #row(conversation) {
    const { id, title } = conversation;
    const row = element("li", { class: "conversation", "data-id": id, "data-testid": "conversation" });
    const more = iconButton("more", `Actions for ${title}`, {
      class: "quiet more",
      "aria-expanded": "false",
      "data-testid": "conversation-actions",
      click: () => this.#toggleActions(row, more, conversation),
    });
    row.append(
      element("button", { type: "button", class: "title", title, "data-testid": "conversation-open", click: () => this.open(conversation) }, title),
      more,
    );
    mark(row, id === this.current);
    return row;
  }

  #toggleActions(row, more, conversation) {
    const already = row.querySelector(".actions-menu");
    if (already) {
      floating.hide();
      return;
    }
    const loading = import("./conversation-actions.js");
    const action = (drawing, text, testid, run) =>
      element("li", {}, iconButton(drawing, text, { "data-testid": testid, click: () => {
        more.focus();
        floating.hide();
        loading.then(({ ConversationActions }) => run(new ConversationActions(this)));
      } }, text));
    const menu = element(
      "ul",
      { class: "actions-menu", "aria-label": `Actions for ${conversation.title}`, "data-testid": "conversation-menu" },
      !conversation.readOnly && action("rename", "Rename", "rename", (actions) => actions.rename(row, conversation)),
      action("download", "Export as Markdown", "export-markdown", (actions) => actions.export(conversation, "markdown", "md")),
      action("download", "Export as JSON", "export-json", (actions) => actions.export(conversation, "json", "json")),
      action("link", "Copy read-only link", "copy-link", (actions) => actions.copyLink(conversation)),
      conversation.share && action("unlink", "Stop sharing", "stop-sharing", (actions) => actions.stopSharing(conversation)),
      conversation.readOnly
        ? action("remove", "Remove from list", "forget", (actions) => actions.forget(conversation))
        : action("remove", "Delete", "delete", (actions) => actions.delete(row, conversation)),
    );
    // Moving the focus out of the menu closes it.
    menu.addEventListener("focusout", (event) => {
      if (event.relatedTarget && event.relatedTarget !== more && !menu.contains(event.relatedTarget)) floating.hide();
    });
    row.append(menu);
    more.setAttribute("aria-expanded", "true");
    floating.show(menu, more, {
      onHide: () => {
        more.setAttribute("aria-expanded", "false");
        menu.remove();
      },
    });
    menu.querySelector("button").focus();
  }

  /** The row of a conversation. */
  rowOf(id) {
    return [...this.root.children].find((row) => id && row.dataset.id === id);
  }
}

function mark(row, isCurrent) {
  row.classList.toggle("current", isCurrent);
  if (isCurrent) row.querySelector(".title")?.setAttribute("aria-current", "page");
  else row.querySelector(".title")?.removeAttribute("aria-current");
}

function shortTitle(text) {
  const line = String(text ?? "").trim().replace(/\s+/g, " ");
  return line.length > 120 ? `${line.slice(0, 119)}…` : line || "Conversation";
}

let memory = [];

function read() {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return stored.filter((item) => typeof item?.id === "string" && typeof item?.title === "string");
  } catch {
    return memory;
  }
}
