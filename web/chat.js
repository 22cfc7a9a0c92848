// The chat page: which conversation is open, and what happens to a question.
//
// Invariant: at most one answer is being written at a time; opening another
// conversation stops it. The address never keeps a session's id, because whoever is
// sent the address could read the conversation.

import * as api from "./api.js";
import { Turn } from "./answer.js";
import { Composer } from "./composer.js";
import { ConversationList, ConversationStore } from "./conversations.js";
import { element, icon, iconButton } from "./elements.js";
import { Sidebar } from "./sidebar.js";

const CURRENT = "docent.current";
const byId = (id) => document.getElementById(id);
const thread = byId("thread");
const welcome = byId("welcome");
const announcer = byId("announcer");

let session = null;
let answering = null;

const store = new ConversationStore();
const sidebar = new Sidebar();
const composer = new Composer(byId("composer"), { onAsk: startTurn, onStop: () => answering?.abort() });
const conversations = new ConversationList(byId("conversations"), store, {
  open: (id) => openConversation(id),
  removed: (id) => id === session && newConversation(),
  notify,
  confirm,
});

byId("new-conversation").addEventListener("click", () => {
  newConversation();
  sidebar.close();
  composer.focus();
});
byId("theme").addEventListener("click", () => {
  announce(`Theme: ${window.docentTheme.next()}.`);
  drawTheme();
});

drawTheme();
start();

async function start() {
  const wanted = new URLSearchParams(location.search);
  history.replaceState(null, "", location.pathname);
  describeBook();
  offerModules();

  const question = wanted.get("q")?.trim();
  const id = wanted.get("session") || (question ? null : rememberedSession());
  if (id) await openConversation(id);
  else newConversation();
  if (question) startTurn(question);
  else if (window.matchMedia("(hover: hover)").matches) composer.focus();
}

/** Asks in the open conversation. */
function startTurn(query) {
  notify("");
  welcome.hidden = true;
  const turn = new Turn(query, { announce, retry: answer });
  thread.append(turn.element);
  answer(turn);
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  turn.element.scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
}

/** Sends a turn's question; called again when the reader retries. */
async function answer(turn) {
  if (answering) return;
  const mine = (answering = new AbortController());
  const { signal } = mine;
  announcer.replaceChildren();
  composer.setBusy(true);
  turn.begin();
  try {
    session ??= (await api.createSession(signal)).session_id;
    rememberSession(session);
    const question = { query: turn.query, session_id: session, ...composer.chosenPart };
    await api.ask(question, { signal, onEvent: (event, data) => onEvent(turn, mine, event, data) });
  } catch (problem) {
    // A turn whose conversation was left is no longer on the page, and needs no words.
    if (!signal.aborted) await failed(turn, problem);
    else if (turn.element.isConnected) turn.stopped();
  } finally {
    if (answering === mine) {
      answering = null;
      composer.setBusy(false);
    }
  }
}

function onEvent(turn, mine, event, data) {
  if (answering !== mine) return;
  turn.receive(event, data);
  if (event !== "done") return;
  session = data.session_id ?? session;
  rememberSession(session);
  store.touch(session, turn.query);
  conversations.select(session);
}

async function failed(turn, problem) {
  if (problem.status === 401 && (await askForKey())) {
    // The answer below belongs to a new attempt.
    answering = null;
    return answer(turn);
  }
  if (problem.status === 404 && session) {
    store.remove(session);
    session = null;
    conversations.select(null);
    rememberSession(null);
    problem = new api.Problem("The server no longer has this conversation. Trying again starts a new one.", { code: problem.code });
  }
  turn.failed(problem);
}

function newConversation() {
  switchTo(null);
  welcome.hidden = false;
  offerSuggestions();
}

/** Leaves the open conversation for another, or for a new one without an id yet. */
function switchTo(id) {
  answering?.abort();
  answering = null;
  composer.setBusy(false);
  session = id;
  rememberSession(id);
  conversations.select(id);
  thread.replaceChildren();
  welcome.hidden = true;
  notify("");
}

async function openConversation(id) {
  switchTo(id);
  sidebar.close();
  thread.append(element("p", { class: "progress" }, element("span", { class: "pulse", "aria-hidden": "true" }), "Opening the conversation"));
  try {
    const stored = await api.loadSession(id);
    if (session !== id) return; // The reader has moved on meanwhile.
    showConversation(stored);
  } catch (problem) {
    if (session !== id) return;
    if (problem.status === 401 && (await askForKey())) return openConversation(id);
    newConversation();
    if (problem.status === 404 || problem.status === 400) {
      store.remove(id);
      notify("The server no longer has that conversation, so it was removed from your list.");
    } else {
      notify(problem.message, { text: "Try again", run: () => openConversation(id) });
    }
  }
}

function showConversation(stored) {
  const turns = stored.turns ?? [];
  rememberSession(stored.session_id);
  store.touch(stored.session_id, stored.title || turns[0]?.query);
  if (stored.title) store.rename(stored.session_id, stored.title);
  conversations.select(stored.session_id);
  welcome.hidden = turns.length > 0;
  thread.replaceChildren(
    ...turns.map(({ query, response }) => {
      const turn = new Turn(query, { announce, retry: answer });
      turn.finish(response);
      return turn.element;
    }),
  );
  announce(turns.length === 1 ? "Conversation opened, 1 answer." : `Conversation opened, ${turns.length} answers.`);
  thread.lastElementChild?.scrollIntoView({ block: "start" });
}

async function describeBook() {
  try {
    const status = await api.loadStatus();
    byId("book-title").textContent = status.title;
    document.title = `${status.title} · Docent`;
    byId("book-note").replaceChildren(
      ...(status.is_sample
        ? ["The sample book inside Docent.", element("span", { class: "for-owner" }, " Run docent ingest FOLDER to read your own.")]
        : ["Answers come only from this book."]),
    );
    const writer = status.model === "extractive" ? "the book’s own words" : status.model;
    byId("about").textContent = `${status.pages} pages · ${writer} · Docent ${status.version}`;
  } catch (problem) {
    if (problem.status === 401 && (await askForKey())) {
      offerModules();
      offerSuggestions();
      return describeBook();
    }
    notify(problem.message, { text: "Try again", run: () => location.reload() });
  }
}

async function offerModules() {
  // Without the list one can still ask the whole book.
  const { modules } = await api.loadModules().catch(() => ({ modules: [] }));
  composer.offerModules(modules);
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

/** Says something at the top of the page until the reader dismisses it or asks on. */
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

/** Speaks to screen readers. Old words go away, so that nobody finds the answer twice. */
function announce(text) {
  const words = element("p", {}, text);
  announcer.append(words);
  setTimeout(() => words.remove(), 8000);
}

function confirm({ heading, text, action }) {
  byId("confirm-heading").textContent = heading;
  byId("confirm-text").textContent = text;
  byId("confirm-action").textContent = action;
  return decide(byId("confirm"));
}

let asking = null;

/** Several requests may be refused at once; the reader is asked once. */
function askForKey() {
  asking ??= (async () => {
    const input = byId("key-value");
    byId("key-cancel").onclick = () => byId("key").close("cancel");
    const given = (await decide(byId("key"))) && input.value.trim();
    input.value = "";
    if (given) api.useKey(given);
    asking = null;
    return Boolean(given);
  })();
  return asking;
}

function decide(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      // Chromium gives the focus back without the caret, and what is typed then goes nowhere.
      const back = document.activeElement;
      back?.blur();
      back?.focus({ preventScroll: true });
      resolve(dialog.returnValue === "confirm");
    }, { once: true });
  });
}

function drawTheme() {
  const choice = window.docentTheme.choice();
  const label = { system: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" }[choice];
  byId("theme").replaceChildren(icon(choice));
  byId("theme").setAttribute("aria-label", label);
  byId("theme").title = label;
}

/** The open conversation survives a reload of this tab, not a visit in another. */
function rememberSession(id) {
  try {
    if (id) sessionStorage.setItem(CURRENT, id);
    else sessionStorage.removeItem(CURRENT);
  } catch {
    // Then a reload starts anew.
  }
}

function rememberedSession() {
  try {
    return sessionStorage.getItem(CURRENT);
  } catch {
    return null;
  }
}
