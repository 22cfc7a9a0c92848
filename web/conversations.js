// The reader's conversations: remembered in this browser, drawn in the sidebar.
//
// The server is never asked for a list. Whoever knows a session's id can read it, so
// the ids a reader has seen are the only ones that may be offered.
//
// Invariant: the list in the sidebar is the list in storage, also when another tab
// changes it.

import { deleteSession, exportSession, renameSession } from "./api.js";
import { element, iconButton } from "./elements.js";
import * as floating from "./floating.js";

const KEY = "docent.conversations";
const KEPT = 200;

/** Ids and titles, newest first. */
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

  /** Puts a conversation first, under its title if it has one already. */
  touch(id, title) {
    const known = this.find(id);
    const rest = read().filter((conversation) => conversation.id !== id);
    this.#write([{ id, title: known?.title || shortTitle(title) }, ...rest].slice(0, KEPT));
  }

  rename(id, title) {
    this.#write(read().map((conversation) => (conversation.id === id ? { id, title: shortTitle(title) } : conversation)));
  }

  remove(id) {
    this.#write(read().filter((conversation) => conversation.id !== id));
  }

  #write(list) {
    this.list = list;
    try {
      localStorage.setItem(KEY, JSON.stringify(list));
    } catch {
      memory = list; // Storage is full or forbidden; the list lasts as long as the page.
    }
    this.dispatchEvent(new Event("change"));
  }
}

/** Draws the store into `list`; `open`, `removed` and `notify` are the page's part. */
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

  #row({ id, title }) {
    const row = element("li", { class: "conversation", "data-id": id, "data-testid": "conversation" });
    const more = iconButton("more", `Actions for ${title}`, {
      class: "quiet more",
      "aria-expanded": "false",
      "data-testid": "conversation-actions",
      click: () => this.#toggleActions(row, more, { id, title }),
    });
    row.append(
      element("button", { type: "button", class: "title", title, "data-testid": "conversation-open", click: () => this.open(id) }, title),
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
    const action = (drawing, text, testid, run) =>
      element("li", {}, iconButton(drawing, text, { "data-testid": testid, click: () => {
        more.focus();
        floating.hide();
        run();
      } }, text));
    const menu = element(
      "ul",
      { class: "actions-menu", "aria-label": `Actions for ${conversation.title}`, "data-testid": "conversation-menu" },
      action("rename", "Rename", "rename", () => this.#rename(row, conversation)),
      action("download", "Export as Markdown", "export-markdown", () => this.#export(conversation, "markdown", "md")),
      action("download", "Export as JSON", "export-json", () => this.#export(conversation, "json", "json")),
      action("link", "Copy link", "copy-link", () => this.#copyLink(conversation)),
      action("remove", "Delete", "delete", () => this.#delete(row, conversation)),
    );
    // Leaving with the keyboard closes it; nothing is lost by that.
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

  #rename(row, { id, title }) {
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
          await renameSession(id, name);
          this.store.rename(id, name);
        } catch (problem) {
          if (!this.#isGone(id, problem)) this.notify(`The conversation could not be renamed. ${problem.message}`);
        }
      }
      this.draw();
      if (focused) this.#rowOf(id)?.querySelector(".more").focus();
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

  async #export({ id, title }, format, extension) {
    try {
      const file = await exportSession(id, format);
      const address = URL.createObjectURL(file);
      const name = title.replace(/[^\p{Letter}\p{Number}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase() || "conversation";
      element("a", { href: address, download: `${name}.${extension}` }).click();
      // The download has to have begun before its address goes away.
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
    } catch (problem) {
      if (!this.#isGone(id, problem)) this.notify(`The conversation could not be exported. ${problem.message}`);
    }
  }

  async #copyLink({ id }) {
    const address = new URL(`?session=${encodeURIComponent(id)}`, document.baseURI);
    try {
      await navigator.clipboard.writeText(address.href);
      this.notify("Link copied. Whoever has it can read this conversation, and go on with it.");
    } catch {
      this.notify(`The link to this conversation: ${address.href}`);
    }
  }

  async #delete(row, { id, title }) {
    const sure = await this.confirm({
      heading: "Delete this conversation?",
      text: `“${title}” will be deleted from the server. This cannot be undone.`,
      action: "Delete",
    });
    if (!sure) return;
    const neighbour = row.nextElementSibling ?? row.previousElementSibling;
    try {
      await deleteSession(id);
    } catch (problem) {
      if (problem.status !== 404) {
        this.notify(`The conversation could not be deleted. ${problem.message}`);
        return;
      }
    }
    this.store.remove(id);
    this.removed(id);
    this.#rowOf(neighbour?.dataset.id)?.querySelector(".title").focus();
    this.notify("Conversation deleted.");
  }

  /** Forgets a conversation the server no longer has, and says so. */
  #isGone(id, problem) {
    if (problem.status !== 404) return false;
    this.store.remove(id);
    this.removed(id);
    this.notify("The server no longer has that conversation, so it was removed from your list.");
    return true;
  }

  #rowOf(id) {
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
