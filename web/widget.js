// The widget: asks questions from any page of the book's website.
//
// The author adds one tag. Users get a button, a panel, and "Ask about this" for selected
// text:
//
//   <script src="https://docent.example/widget.js" data-title="Ask the handbook" defer></script>
//
// Attributes, all optional:
//   data-api          URL of the Docent server; defaults to where this script was loaded from
//   data-title        title of the panel and its button; defaults to "Ask the book"
//   data-placeholder  placeholder of the question box
//   data-welcome      text above the suggested questions of a new conversation
//   data-logo         URL of an image in the head of the panel
//   data-book         search only this book, if there are several
//   data-module       search only this module of the book
//   data-version      version of the book to ask about, or all; defaults to that of the page, else the default version
//   data-locale       locale of the book to ask about, or all; defaults to that of the page, else the default locale
//   data-search       off: no search; the default opens it with Ctrl-K, Command-K and the button in the panel
//   data-position     right (default) or left
//   data-theme        auto (default: html[data-theme], then the system), light or dark
//   data-accent       accent color; same as --docent-accent
//   data-key          an API key; everyone who opens the page can read it
//
// CSS variables that the author may set on :root or any ancestor of the widget:
//   --docent-accent         buttons and links; the text color on it is chosen automatically
//   --docent-font           font of the widget
//   --docent-reading-font   font of answers; defaults to --docent-font, or else a serif
//   --docent-background     background of the panel; also set --docent-text
//   --docent-text           text color of the panel
//   --docent-radius         corner radius of the panel (16px)
//   --docent-width          width of the panel (400px)
//   --docent-height         maximum height of the panel (640px)
//   --docent-offset         distance from the edges of the window (20px)
//   --docent-layer          z-index of the widget (2147483000)
//
// From scripts: Docent.open(), Docent.close(), Docent.ask("What is …?"), Docent.search().
//
// The server sends this module, the modules and the style sheets that it imports as one
// script, because other sites' pages may not be able to load more.
//
// Invariant: on any page, the widget never throws, leaks no styles into the page, and takes
// no styles from it except the variables above. Ctrl-K stays the page's if the page uses it.

import { connect, loadSession, loadSuggestions } from "./api.js";
import { announcer } from "./announcer.js";
import { offerNext } from "./after.js";
import { Turn } from "./answer.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { editionHere } from "./edition.js";
import { element, icon, iconButton, openInThisTab } from "./elements.js";
import { addStyles, followColors, guarded, keepKeys, ownTag, whenReady } from "./embed.js";
import * as floating from "./floating.js";
import { recall, remember } from "./memory.js";
import { Search } from "./search.js";
import { offerForSelection, selectedText } from "./selection.js";
import { onControlK, onSlash } from "./shortcut.js";
import baseStyles from "./base.css";
import answerStyles from "./answer.css";
import citationStyles from "./citation.css";
import searchStyles from "./search.css";
import widgetStyles from "./widget.css";

const narrow = window.matchMedia("(max-width: 480px)");

class Widget {
  #host = document.createElement("docent-widget");
  #shadow = this.#host.attachShadow({ mode: "open" });
  #isRestored = false;
  #search = null;
  /** Whether a selection is in the author's page. */
  #isOutside = (node) => !this.#host.contains(node);
  /** The element that had the focus before the panel was opened. */
  #opener = null;

  constructor(settings, base) {
    this.settings = settings;
    this.title = settings.title || "Ask the book";
    this.names = { session: `docent.session:${base}`, open: `docent.open:${base}`, searches: `docent.searches:${base}` };
    this.#build();
    this.composer = new Composer(this.form, { onAsk: (query, selection) => this.#startTurn(query, selection), onStop: () => this.conversation.stop() });
    this.conversation = new Conversation(this.composer, {
      details: async (turn) => ({ ...(await this.#part()), selection: turn.selection ?? undefined }),
      changed: (session) => remember(this.names.session, session),
      failed: (turn, problem) => turn.failed(problem),
    });
    this.conversation.session = recall(this.names.session);
  }

  #build() {
    this.launcher = element(
      "button",
      { type: "button", class: "launcher", "aria-expanded": "false", "aria-controls": "panel", "aria-haspopup": "dialog", "data-testid": "button", click: () => (this.#isOpen ? this.close() : this.open()) },
      icon("book"),
      this.title,
    );
    this.askSelection = element(
      "button",
      // A press must not remove the selection.
      { type: "button", class: "ask-selection", hidden: true, "data-testid": "ask-selection", pointerdown: (event) => event.preventDefault(), click: () => this.#useSelection() },
      icon("book"),
      "Ask about this",
    );
    this.thread = element("div", { class: "thread", role: "group", tabindex: "0", "aria-label": "Conversation", "data-testid": "thread" });
    this.form = element(
      "form",
      { class: "composer", "aria-label": this.title },
      element("div", { id: "selection", class: "chip", hidden: true, "data-testid": "selection" }),
      element(
        "div",
        { class: "ask-row" },
        element("textarea", { id: "question", rows: "1", "aria-label": "Your question", "aria-describedby": "question-count", placeholder: this.settings.placeholder || "Ask a question", autocomplete: "off", enterkeyhint: "send", "data-testid": "question" }),
        iconButton("send", "Send", { id: "send", type: "submit", class: "send", title: "Send (Enter)", "data-testid": "send" }),
        iconButton("stop", "Stop answering", { id: "stop", class: "send", hidden: true, "data-testid": "stop" }),
      ),
      element("span", { id: "question-count", class: "count", "data-testid": "count" }),
    );
    const log = element("div", { class: "visually-hidden", role: "log", "aria-live": "polite", "aria-label": "Answer, as it arrives" });
    this.announce = announcer(log);
    this.panel = element(
      "div",
      { class: "panel", id: "panel", role: "dialog", "aria-label": this.title, hidden: true, "data-testid": "panel", keydown: (event) => this.#onKey(event) },
      element(
        "div",
        { class: "head" },
        this.settings.logo && element("img", { class: "logo", src: this.settings.logo, alt: "" }),
        element("h2", {}, this.title),
        this.#hasSearch && iconButton("search", "Search", { class: "quiet", title: "Search (Ctrl K)", "aria-keyshortcuts": "Control+K Meta+K", "data-testid": "search-open", click: () => this.search() }),
        iconButton("plus", "New conversation", { class: "quiet", "data-testid": "new", click: () => this.#newConversation() }),
        iconButton("close", "Close", { class: "quiet", "data-testid": "close", click: () => this.close() }),
      ),
      element("div", { class: "body", "data-frame": true }, this.thread),
      this.form,
      log,
    );
  }

  /** Adds the widget to the page. */
  show() {
    addStyles(this.#shadow, [baseStyles, answerStyles, citationStyles, searchStyles, widgetStyles]);
    this.#host.dataset.position = this.settings.position === "left" ? "left" : "right";
    this.#shadow.append(this.askSelection, this.launcher, this.panel);
    document.body.append(this.#host);
    followColors(this.#host, this.settings, this.launcher, this.panel);
    keepKeys(this.#host);
    narrow.addEventListener("change", () => this.panel.setAttribute("aria-modal", String(narrow.matches)));
    offerForSelection(this.askSelection, this.#isOutside);
    if (this.#hasSearch) {
      onControlK(window, () => this.search());
      onSlash(this.panel, () => this.search());
    }
    // The panel stays open from page to page, except on phones, where it would cover the page.
    if (recall(this.names.open) && !narrow.matches) this.open(false);
  }

  get #isOpen() {
    return !this.panel.hidden;
  }

  open(moveFocus = true) {
    if (!this.#isOpen) this.#opener = this.#shadow.activeElement ?? document.activeElement;
    this.panel.hidden = false;
    this.panel.setAttribute("aria-modal", String(narrow.matches));
    this.launcher.setAttribute("aria-expanded", "true");
    remember(this.names.open, true);
    if (moveFocus) this.composer.focus();
    if (!this.#isRestored) this.#restore();
  }

  close() {
    if (!this.#isOpen) return;
    floating.hide();
    this.panel.hidden = true;
    this.launcher.setAttribute("aria-expanded", "false");
    remember(this.names.open, null);
    // Return the focus to where it was, or to the launcher if that element is gone.
    const opener = this.#opener;
    const canReturn = opener?.isConnected && opener !== document.body && opener !== this.askSelection && !this.panel.contains(opener);
    (canReturn ? opener : this.launcher).focus();
  }

  /** While another answer is being written, the question stays in the box. */
  ask(text) {
    this.open();
    this.composer.ask(String(text ?? ""));
  }

  /** Opens the search. Its last row asks what was typed. */
  search() {
    const wanted = { title: "Search", part: () => this.#part(), onAsk: (text) => this.ask(text), name: this.names.searches };
    this.#search ??= new Search(this.#shadow, wanted);
    this.#search.open();
  }

  /** What to search: as the author configured it, and the version and locale of the page. */
  async #part() {
    const { book, module } = this.settings;
    return { ...(book && { book }), ...(module && { module }), ...(await editionHere(this.settings)) };
  }

  get #hasSearch() {
    return this.settings.search !== "off";
  }

  #onKey(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      this.close();
    } else if (event.key === "Tab") {
      this.#keepFocusInside(event);
    }
  }

  #keepFocusInside(event) {
    const stops = [...this.panel.querySelectorAll("button, a[href], summary, textarea, [tabindex='0']")].filter((one) => one.getClientRects().length > 0);
    const [leaving, entering] = event.shiftKey ? [stops[0], stops[stops.length - 1]] : [stops[stops.length - 1], stops[0]];
    if (this.#shadow.activeElement !== leaving) return;
    event.preventDefault();
    entering.focus();
  }

  #turn(query, selection = null) {
    const edit = () => this.composer.fill(query, selection);
    const again = () => this.composer.ask(query, selection);
    const ended = (turn, response, live) => live && offerNext(turn, response, this.thread, (text) => this.composer.ask(text));
    return new Turn(query, { announce: this.announce, retry: (turn) => this.conversation.answer(turn), again, edit, ended, selection, level: 3, details: false });
  }

  #startTurn(query, selection) {
    this.thread.querySelector(".welcome")?.remove();
    const turn = this.#turn(query, selection);
    this.thread.append(turn.element);
    this.#scrollTo(turn);
    this.conversation.answer(turn);
  }

  /** Scrolls only the thread; `scrollIntoView` would also scroll the page behind it. */
  #scrollTo(turn) {
    this.thread.scrollTop += turn.element.getBoundingClientRect().top - this.thread.getBoundingClientRect().top;
  }

  #newConversation() {
    this.conversation.switchTo(null);
    floating.hide();
    this.thread.replaceChildren();
    this.#welcome();
    this.composer.focus();
  }

  async #welcome() {
    const list = element("ul", {});
    this.thread.append(element("div", { class: "welcome" }, element("p", {}, this.settings.welcome || "Answers come only from this book and cite the words that support them."), list));
    // Suggestions are optional. They are about this page if it is in the book.
    const page = location.origin + location.pathname;
    const { questions } = await this.#part().then((part) => loadSuggestions(3, { page, ...part })).catch(() => ({ questions: [] }));
    const suggestion = (text) => element("button", { type: "button", "data-testid": "suggestion", click: () => {
      this.composer.focus();
      this.composer.ask(text);
    } }, text);
    list.append(...questions.map((text) => element("li", {}, suggestion(text))));
  }

  /** Shows the conversation that was started in this tab on an earlier page. */
  async #restore() {
    this.#isRestored = true;
    const { session } = this.conversation;
    if (session) {
      try {
        const stored = await loadSession(session);
        if (this.conversation.session !== session) return; // The user has started another one in the meantime.
        const turns = stored.turns.map(({ query, response }) => {
          const turn = this.#turn(query);
          turn.finish(response);
          return turn;
        });
        this.thread.prepend(...turns.map((turn) => turn.element));
        if (turns.length > 0) this.#scrollTo(turns[turns.length - 1]);
        this.composer.last = turns[turns.length - 1]?.query ?? "";
      } catch (problem) {
        if (this.conversation.session === session && [400, 404].includes(problem.status)) this.conversation.switchTo(null);
      }
    }
    if (!this.thread.hasChildNodes()) this.#welcome();
  }

  #useSelection() {
    const chosen = selectedText(this.#isOutside);
    this.askSelection.hidden = true;
    if (!chosen) return;
    this.open();
    this.composer.select({ text: chosen.text, url: location.href });
  }
}

function start() {
  const { settings, base } = ownTag("widget.js");
  connect(base, settings.key || null);
  // Links within the site stay in this tab, where the conversation continues.
  openInThisTab((url) => url.origin === location.origin);
  const widget = new Widget(settings, base);
  window.Docent = { open: () => widget.open(), close: () => widget.close(), ask: (text) => widget.ask(text), search: () => widget.search() };
  whenReady(() => widget.show());
}

// The tag may be on the page twice.
if (!window.Docent?.ask) guarded(start);
