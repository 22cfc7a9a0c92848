// The chat page: shows the open conversation, the welcome and the dialogs.
//
// Invariant: the address bar has the id of the open conversation, for reloading, bookmarks
// and the Back button, but never its key. Without the key, which is stored in this browser,
// nobody can read the conversation.

import * as api from "./api.js";
import { Turn } from "./answer.js";
import { announcer } from "./announcer.js";
import { readBeside } from "./citation.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { ConversationList, ConversationStore } from "./conversations.js";
import { element, icon, iconButton } from "./elements.js";
import { onControlK, onSlash } from "./shortcut.js";
import { Sidebar } from "./sidebar.js";

const byId = (id) => document.getElementById(id);
const thread = byId("thread");
const welcome = byId("welcome");
const announce = announcer(byId("announcer"));

const store = new ConversationStore();
const sidebar = new Sidebar();
const composer = new Composer(byId("composer"), { onAsk: startTurn, onStop: () => conversation.stop() });
const conversation = new Conversation(composer, {
  details: (turn) => ({ ...composer.chosenPart, selection: turn.selection ?? undefined }),
  changed: (session) => history.replaceState(null, "", session ? `?session=${encodeURIComponent(session.id)}` : location.pathname),
  asked: listConversation,
  gone: (id) => store.remove(id),
  failed,
});
const conversations = new ConversationList(byId("conversations"), store, {
  open: (chosen) => {
    addStep();
    openConversation(chosen);
  },
  removed: (id) => id === conversation.session?.id && newConversation(),
  notify,
  confirm,
});

byId("new-conversation").addEventListener("click", () => {
  addStep();
  newConversation();
  sidebar.close();
  composer.focus();
});
byId("theme").addEventListener("click", () => {
  announce(`Theme: ${window.docentTheme.next()}.`);
  drawTheme();
});

byId("search").addEventListener("click", openSearch);
readBeside(read);
onControlK(document, openSearch);
onSlash(document, openSearch);
window.addEventListener("popstate", () => {
  // A link within the page, such as the skip link, is a step of its own.
  if (idInAddress() !== (conversation.session?.id ?? null)) openFromAddress();
});

drawTheme();
start();

async function start() {
  const question = new URLSearchParams(location.search).get("q")?.trim();
  keepPagesOpen();
  describeBook();
  offerParts();
  await openFromAddress();
  if (question) startTurn(question);
  else if (window.matchMedia("(hover: hover)").matches) composer.focus();
}

function idInAddress() {
  return new URLSearchParams(location.search).get("session");
}

/** Opens the conversation in the address bar. Its key is stored in this browser, or is part of a read-only link. */
function openFromAddress() {
  const id = idInAddress();
  if (!id) return newConversation();
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  const known = store.find(id);
  // The user's own conversation opens with full access, even from a read-only link.
  return openConversation(known && !(known.readOnly && key) ? known : { id, key, readOnly: true });
}

/** Adds a step to the browser's history, so that its Back button returns to the open conversation. */
function addStep() {
  history.pushState(null, "", location.href);
}

/** Asks a question in the open conversation. */
function startTurn(query, selection = null) {
  notify("");
  welcome.hidden = true;
  const turn = newTurn(query, { selection });
  thread.append(turn.element);
  retry(turn);
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  turn.element.scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
}

function newTurn(query, { selection = null, readOnly = false } = {}) {
  return new Turn(query, { announce, retry, readOnly, selection, again: () => composer.ask(query, selection), edit: () => composer.fill(query, selection), ended });
}

/** Shows what follows an answer: its figures, and suggested questions. */
async function ended(turn, response, live) {
  const after = await import("./after.js").catch(() => null);
  after?.showFigures(turn, response);
  if (live) after?.offerNext(turn, response, thread, askFromSearch);
}

function retry(turn) {
  return conversation.answer(turn);
}

function listConversation(turn) {
  store.touch(conversation.session, turn.query);
  conversations.select(conversation.session.id);
}

async function failed(turn, problem) {
  if (problem.status === 401 && (await askForKey())) return retry(turn);
  turn.failed(problem);
}

// The scripts of the search and of the reading pane are loaded when they are needed for the first time.
let search = null;
let pane = null;

async function openSearch() {
  if (document.querySelector("dialog:modal")) return;
  const { Search } = await import("./search.js");
  search ??= new Search(document.body, { title: "Search the book", part: () => composer.chosenPart, onAsk: askFromSearch, onPage: read, name: "docent.searches" });
  search.open();
}

/** Opens a page of the book beside the conversation. */
async function read(place) {
  const { ReadingPane } = await import("./reading.js");
  pane ??= new ReadingPane(document.body, { announce, onSelect: (chosen) => composer.select(chosen) });
  await pane.open(place);
}

function askFromSearch(query) {
  composer.focus();
  composer.ask(query);
}

function newConversation() {
  switchTo(null);
  welcome.hidden = false;
  offerSuggestions();
}

/** Leaves the open conversation for another one; null stands for a new conversation. */
function switchTo(session) {
  conversation.switchTo(session);
  composer.setReadOnly(false);
  conversations.select(session?.id ?? null);
  thread.replaceChildren();
  welcome.hidden = true;
  notify("");
}

async function openConversation(chosen) {
  const { id, key } = chosen;
  switchTo({ id, key, readOnly: Boolean(chosen.readOnly) });
  const mine = conversation.session;
  sidebar.close();
  thread.append(element("p", { class: "progress" }, element("span", { class: "pulse", "aria-hidden": "true" }), "Opening the conversation"));
  try {
    const stored = await api.loadSession(mine);
    if (conversation.session !== mine) return; // The user has opened another conversation in the meantime.
    showConversation(mine, stored);
  } catch (problem) {
    if (conversation.session !== mine) return;
    if (problem.status === 401 && (await askForKey())) return openConversation(chosen);
    newConversation();
    if (problem.status === 404 || problem.status === 400) {
      const listed = store.find(id);
      store.remove(id);
      notify(
        listed
          ? "The server no longer has that conversation, so it was removed from your list."
          : key
            ? "That link no longer works: the conversation was deleted, or is no longer shared."
            : "This address only works in the browser where the conversation was started. Copy a read-only link there to share it.",
      );
    } else {
      notify(problem.message, { text: "Try again", run: () => openConversation(chosen) });
    }
  }
}

function showConversation(session, stored) {
  const turns = stored.turns ?? [];
  session.readOnly = stored.read_only;
  store.touch(session, stored.title || turns[0]?.query);
  if (stored.title) store.rename(session.id, stored.title);
  conversations.select(session.id);
  composer.setReadOnly(session.readOnly);
  welcome.hidden = turns.length > 0 || session.readOnly;
  thread.replaceChildren(...turns.map(shownTurn));
  composer.last = turns.at(-1)?.query ?? "";
  offerEarlier(stored.earlier);
  announce(turns.length === 1 ? "Conversation opened, 1 answer." : `Conversation opened, ${turns.length} answers.`);
  thread.lastElementChild?.scrollIntoView({ block: "start" });
}

function shownTurn({ query, response }) {
  const turn = newTurn(query, { readOnly: conversation.session.readOnly });
  turn.finish(response);
  return turn.element;
}

/** Adds a button above the turns that loads earlier ones. */
function offerEarlier(before) {
  if (!before) return;
  const mine = conversation.session;
  const button = element("button", { type: "button", class: "plain earlier", "data-testid": "earlier", click: async () => {
    button.disabled = true;
    try {
      const { turns, earlier } = await api.loadSession(mine, before);
      if (conversation.session !== mine) return;
      const first = thread.querySelector(".turn");
      const top = first?.getBoundingClientRect().top;
      button.replaceWith(...turns.map(shownTurn));
      offerEarlier(earlier);
      // Keep the visible turns where they are.
      if (first) window.scrollBy(0, first.getBoundingClientRect().top - top);
      announce(turns.length === 1 ? "1 earlier answer shown." : `${turns.length} earlier answers shown.`);
    } catch (problem) {
      button.disabled = false;
      if (conversation.session === mine) notify(`Earlier questions could not be loaded. ${problem.message}`);
    }
  } }, "Show earlier questions");
  thread.prepend(button);
}

/** With a key, links to the book's pages need the read-only cookie; renews it before it expires. */
function keepPagesOpen() {
  const renew = () => api.hasKey() && api.openPages().catch(() => {});
  renew();
  setInterval(renew, 6 * 60 * 60 * 1000);
}

async function describeBook() {
  try {
    const status = await api.loadStatus();
    byId("book-title").textContent = status.title;
    document.title = `${status.title} · Docent`;
    byId("book-note").replaceChildren(
      ...(status.is_sample
        ? ["This is the built-in sample book.", element("span", { class: "for-operator" }, " Run docent ingest FOLDER to add your own.")]
        : ["Answers come only from this book."]),
    );
    const writer = status.model === "extractive" ? "answers quote the book" : status.model;
    byId("about").textContent = `${status.pages} ${status.pages === 1 ? "page" : "pages"} · ${writer} · Docent ${status.version}`;
  } catch (problem) {
    if (problem.status === 401 && (await askForKey())) {
      offerParts();
      offerSuggestions();
      return describeBook();
    }
    notify(problem.message, { text: "Try again", run: () => location.reload() });
  }
}

async function offerParts() {
  // Without the list, the whole book can still be searched.
  const listed = await api.loadModules().catch(() => null);
  if (!listed) return;
  const { PartChoice } = await import("./part.js");
  composer.part = new PartChoice(byId("composer"), listed);
}

async function offerSuggestions() {
  const list = byId("suggestions");
  if (list.children.length > 0) return;
  const { questions } = await api.loadSuggestions(4).catch(() => ({ questions: [] }));
  list.replaceChildren(
    ...questions.map((question) =>
      element("li", {}, element("button", { type: "button", "data-testid": "suggestion", click: () => {
        composer.focus();
        startTurn(question);
      } }, question)),
    ),
  );
  list.hidden = questions.length === 0;
}

/** Shows a notice at the top of the page until the user dismisses it or asks another question. */
function notify(text, action = null) {
  const notice = byId("notice");
  if (!text) {
    notice.replaceChildren();
    return;
  }
  notice.replaceChildren(
    element("p", {}, text),
    ...(action ? [element("button", { type: "button", class: "plain", click: action.run }, action.text)] : []),
    iconButton("close", "Dismiss", { class: "quiet", click: () => notify("") }),
  );
  notice.scrollIntoView({ block: "nearest" });
}

function confirm({ heading, text, action }) {
  byId("confirm-heading").textContent = heading;
  byId("confirm-text").textContent = text;
  byId("confirm-action").textContent = action;
  return decide(byId("confirm"));
}

/** Asks for the key; resolves to whether it was accepted. */
async function askForKey() {
  return (await import("./key.js")).askForKey(decide);
}

function decide(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      // Chromium restores the focus without the caret, so typed text would be lost.
      const back = document.activeElement;
      back?.blur();
      back?.focus({ preventScroll: true });
      resolve(dialog.returnValue === "confirm");
    }, { once: true });
  });
}

function drawTheme() {
  const choice = window.docentTheme.choice();
  const label = `Theme: ${choice}`;
  byId("theme").replaceChildren(icon(choice));
  byId("theme").setAttribute("aria-label", label);
  byId("theme").title = label;
}
// So that the first Ctrl-K does not lose what is typed right after it.
window.requestIdleCallback?.(() => import("./search.js"));
