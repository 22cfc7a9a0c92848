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
//   data-book         search only this book, if there are several
//   data-module       search only this module of the book
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
// From scripts: Docent.open(), Docent.close(), Docent.ask("What is …?").
//
// It is a single file, because other sites' pages may not be able to load more.
//
// Invariant: on any page, the widget never throws, leaks no styles into the page, and takes
// no styles from it except the variables above.
(function () {
  "use strict";
  if (window.Docent?.ask) return;

  const script = document.currentScript ?? [...document.querySelectorAll("script[src]")].findLast?.((one) => /\/widget\.js([?#]|$)/.test(one.src));
  const settings = script?.dataset ?? {};
  const NARROW = "(max-width: 480px)";
  const LIMIT = 8000;
  // Sections with a lower similarity are not shown as nearest; the server leaves them out too.
  const NEAR = 0.05;
  const SCOPES = { selection: "From your selection", section: "From this section", book: "From the whole book" };
  const PROGRESS = { retrieving: "Searching the book", generating: "Writing the answer and checking every sentence" };

  // Sizes are in pixels, because `rem` depends on the font size of the page.
  const STYLE = `
    :host { all: initial;
      --accent: var(--docent-accent, #0f6a5b); --surface: var(--docent-background, #ffffff); --text: var(--docent-text, #211f1b);
      --soft: #5b574f; --line: #e3ded4; --edge: #8d867a; --sunken: #f4f1ea; --highlight: #fdeaa7; --on-highlight: #2b2408;
      --warning: #8a4a00; --warning-ground: #fcf0dc; --shadow: 0 2px 6px rgb(30 25 15 / 12%), 0 12px 40px rgb(30 25 15 / 20%);
      --font: var(--docent-font, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif);
      --reading: var(--docent-reading-font, var(--docent-font, ui-serif, "Iowan Old Style", Charter, Georgia, Cambria, serif));
      --radius: var(--docent-radius, 16px); --offset: var(--docent-offset, 20px); --tint: color-mix(in srgb, var(--accent) 14%, var(--surface));
      font: 15px/1.5 var(--font); color: var(--text); color-scheme: light; }
    :host([data-theme="dark"]) {
      --accent: var(--docent-accent, #72c9b6); --surface: var(--docent-background, #1e2124); --text: var(--docent-text, #e9e6df);
      --soft: #b0aca2; --line: #363a40; --edge: #7f8388; --sunken: #16181a; --highlight: #5c4d14; --on-highlight: #fff4cf;
      --warning: #efb868; --warning-ground: #362813; --shadow: 0 2px 6px rgb(0 0 0 / 40%), 0 12px 40px rgb(0 0 0 / 55%); color-scheme: dark; }
    *, *::before { box-sizing: border-box; } [hidden] { display: none !important; }
    h2, h3, p, ul, ol, blockquote { margin: 0; padding: 0; } button, textarea { font: inherit; color: inherit; }
    button { border: 0; background: none; padding: 0; cursor: pointer; } a { color: var(--link); text-underline-offset: 0.18em; }
    :focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 6px; }
    svg { width: 19px; height: 19px; flex: none; fill: none; stroke: currentcolor; stroke-width: 1.8; stroke-linecap: round; stroke-linejoin: round; }
    .launcher, .ask-selection { position: fixed; z-index: var(--docent-layer, 2147483000); display: inline-flex; align-items: center; gap: 8px;
      background: var(--accent); color: var(--on-accent); font-weight: 600; box-shadow: var(--shadow); }
    .launcher { bottom: var(--offset); right: var(--offset); min-height: 48px; padding: 0 17.5px 0 14.5px; border-radius: 99px; }
    .launcher:focus-visible, .ask-selection:focus-visible { outline: 3px solid var(--surface); outline-offset: -5px; border-radius: 99px; }
    .ask-selection { min-height: 33.5px; padding: 0 13px 0 10.5px; border-radius: 99px; font-size: 14px; white-space: nowrap; }
    .ask-selection svg { width: 16px; height: 16px; }
    .panel { position: fixed; z-index: var(--docent-layer, 2147483000); right: var(--offset); bottom: calc(var(--offset) + 60px); display: flex; flex-direction: column;
      width: min(var(--docent-width, 400px), calc(100vw - 2 * var(--offset))); height: min(var(--docent-height, 640px), calc(100dvh - var(--offset) * 2 - 60px));
      border: 1px solid var(--line); border-radius: var(--radius); background: var(--surface); color: var(--text); box-shadow: var(--shadow); overflow: hidden; }
    :host([data-position="left"]) .launcher, :host([data-position="left"]) .panel { right: auto; left: var(--offset); }
    .head { display: flex; align-items: center; gap: 4px; padding: 9px 8px 9px 17.5px; border-bottom: 1px solid var(--line); }
    .head h2 { flex: 1; min-width: 0; font: 600 17px/1.3 var(--reading); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    .quiet { display: inline-grid; place-items: center; width: 35px; height: 35px; border-radius: 8px; color: var(--soft); }
    .quiet:hover { background: var(--sunken); color: var(--text); } .quiet svg { width: 17.5px; height: 17.5px; }
    .quiet[aria-pressed="true"] { background: var(--tint); color: var(--text); }
    .body { position: relative; flex: 1; min-height: 0; display: flex; }
    .thread { flex: 1; min-width: 0; overflow-y: auto; overscroll-behavior: contain; padding: 4px 17.5px 16px; }
    .thread:focus-visible { outline-offset: -3px; }
    .welcome { padding-top: 16px; color: var(--soft); } .welcome ul { display: grid; gap: 8px; margin-top: 16px; list-style: none; }
    .welcome button { width: 100%; padding: 10.5px 14.5px; border: 1px solid var(--line); border-radius: 10px; text-align: left; color: var(--text); }
    .welcome button:hover { border-color: var(--edge); background: var(--sunken); }
    .turn { padding-top: 16px; } .turn + .turn { margin-top: 16px; border-top: 1px solid var(--line); } .turn:last-child { min-height: 100%; }
    .asked { font: 600 17.5px/1.4 var(--reading); overflow-wrap: anywhere; white-space: pre-wrap; }
    .selected { margin-bottom: 6.5px; padding-left: 11px; border-left: 3px solid var(--accent); color: var(--soft); font-size: 14px;
      display: -webkit-box; -webkit-line-clamp: 3; -webkit-box-orient: vertical; overflow: hidden; overflow-wrap: anywhere; }
    .badges { display: flex; flex-wrap: wrap; gap: 5.5px; margin: 8px 0; }
    .badge { padding: 1.5px 9.5px; border-radius: 99px; background: var(--sunken); color: var(--soft); font-size: 12.5px; font-weight: 550; }
    .badge.warn { background: var(--warning-ground); color: var(--warning); }
    .prose { font: 16.5px/1.62 var(--reading); overflow-wrap: break-word; } .prose > * + *, .words > * + * { margin-top: 11px; }
    .prose ul, .prose ol { padding-left: 21px; } .prose :is(h1, h2, h3, h4) { font: 600 16.5px/1.4 var(--reading); }
    .prose code { padding: 0.08em 0.3em; border-radius: 4px; background: var(--sunken); font: 0.84em/1.5 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
    .prose pre { margin: 0; padding: 11px 14.5px; overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; background: var(--sunken); font: 13px/1.55 ui-monospace, Menlo, Consolas, monospace; }
    .prose pre code { padding: 0; background: none; font: inherit; overflow-wrap: normal; }
    .prose table { display: block; overflow-x: auto; border-collapse: collapse; font: 14px/1.5 var(--font); } .prose :is(th, td) { padding: 5.5px 9.5px; border: 1px solid var(--line); text-align: left; }
    .prose blockquote { padding-left: 13px; border-left: 3px solid var(--line); color: var(--soft); }
    .sentence[data-supported="false"] > .words { text-decoration: underline dotted var(--warning) 0.1em; text-underline-offset: 0.25em; }
    .unsupported { padding: 1.5px 8px; border-radius: 99px; background: var(--warning-ground); color: var(--warning); font: 550 12px/1.4 var(--font); white-space: nowrap; }
    .marks { white-space: nowrap; }
    .mark { position: relative; min-width: 19px; height: 19px; margin-left: 3px; padding: 0 4px; border-radius: 6px; background: var(--tint); color: var(--text);
      font: 600 11.5px/19px var(--font); text-align: center; vertical-align: 0.4em; }
    .mark::before { content: ""; position: absolute; inset: -5px -1.5px; }
    .mark:hover, .mark[aria-expanded="true"] { background: var(--accent); color: var(--on-accent); }
    .card { position: absolute; inset: auto 9.5px 9.5px; max-height: calc(100% - 19px); display: flex; flex-direction: column; padding: 11px 14.5px; border: 1px solid var(--line);
      border-radius: 12px; background: var(--surface); box-shadow: var(--shadow); font-size: 14px; }
    .card.top { inset: 9.5px 9.5px auto; } .card header { display: flex; justify-content: space-between; gap: 8px; } .card .quiet { flex: none; width: 30.5px; height: 30.5px; margin: -4px -6.5px 0 0; }
    .card strong { display: block; } .card .path { color: var(--soft); font-size: 13px; }
    .card blockquote { margin: 6.5px 0 8px; max-height: 176px; overflow: auto; color: var(--soft); font: 15.5px/1.55 var(--reading); white-space: pre-wrap; overflow-wrap: anywhere; }
    .card mark { background: var(--highlight); color: var(--on-highlight); border-radius: 3px; } .address { color: var(--soft); font: 12px/1.5 ui-monospace, Menlo, monospace; overflow-wrap: anywhere; }
    .badges:empty { display: none; } .progress { display: flex; align-items: center; gap: 8px; margin: 8px 0; color: var(--soft); font-size: 13px; line-height: 22.5px; }
    .progress::before { content: ""; width: 9px; height: 9px; border-radius: 50%; background: var(--accent); animation: pulse 1.3s ease-in-out infinite; } @keyframes pulse { 50% { opacity: 0.25; } }
    .after h3 { margin: 14.5px 0 5px; color: var(--soft); font-size: 13px; font-weight: 600; } .nearest { display: grid; gap: 8px; list-style: none; } .nearest .address { display: block; }
    .row { display: flex; align-items: center; gap: 1.5px; margin: 8px 0 0 -8px; } .row p { margin-left: 6.5px; color: var(--soft); font-size: 13.5px; }
    .problem { display: grid; gap: 9.5px; justify-items: start; margin-top: 13px; padding: 11px 14.5px; border-radius: 10px; background: var(--warning-ground); font-size: 14.5px; }
    .plain { min-height: 32px; padding: 2.5px 12px; border: 1px solid var(--edge); border-radius: 8px; background: var(--surface); font-size: 14px; font-weight: 550; }
    .plain[aria-disabled="true"] { border-style: dashed; color: var(--soft); cursor: default; }
    form { margin: 8px 13px 13px; padding: 9px 9px 9px 14.5px; border: 1px solid var(--edge); border-radius: 14px; background: var(--surface); }
    form:focus-within { border-color: var(--link); box-shadow: 0 0 0 1px var(--link); } .ask-row { display: flex; align-items: flex-end; gap: 8px; }
    textarea { flex: 1; min-width: 0; min-height: 35px; max-height: 144px; padding: 5px 0; border: 0; background: none; resize: none; font-size: 16px; line-height: 1.5; } textarea:focus-visible { outline: none; }
    ::placeholder { color: var(--soft); opacity: 1; } .count { color: var(--warning); font-size: 13px; } .count:empty { display: none; }
    .send { display: grid; place-items: center; flex: none; width: 35px; height: 35px; border-radius: 50%; background: var(--accent); color: var(--on-accent); } .send:focus-visible { border-radius: 50%; }
    .chip { display: flex; align-items: flex-start; gap: 6.5px; margin: 0 0 6.5px -5px; padding: 5.5px 3px 5.5px 11px; border-left: 3px solid var(--accent); border-radius: 4px 8px 8px 4px; background: var(--sunken); }
    .chip q { flex: 1; min-width: 0; max-height: 65.5px; overflow: hidden; overflow-wrap: anywhere; color: var(--soft); font-size: 14px; line-height: 21.5px; display: -webkit-box; -webkit-line-clamp: 3; -webkit-box-orient: vertical; }
    .chip .quiet { width: 27px; height: 27px; }
    @media ${NARROW} { .panel { inset: 0 !important; width: auto; height: auto; border: 0; border-radius: 0; padding-bottom: env(safe-area-inset-bottom); } }
    @media (prefers-reduced-motion: reduce) { * { animation: none !important; } }
    @media print { :host { display: none; } }
  `;

  const DRAWINGS = {
    book: ["M12 6.5C10 5 7 4.5 3.5 4.5v13.5c3.5 0 6.5.5 8.5 2 2-1.5 5-2 8.5-2V4.5C17 4.5 14 5 12 6.5z", "M12 6.5V20"],
    close: ["M6 6l12 12", "M18 6L6 18"],
    fresh: ["M12 5v14", "M5 12h14"],
    send: ["M12 19V5", "M5.5 11.5L12 5l6.5 6.5"],
    stop: ["M8 8h8v8H8z"],
    up: ["M7 11v9H4v-9z", "M7 11l4-8a2.5 2.5 0 0 1 2.5 2.5V9h5a2 2 0 0 1 2 2.3l-1.2 7A2 2 0 0 1 17.3 20H7"],
    down: ["M7 13V4H4v9z", "M7 13l4 8a2.5 2.5 0 0 0 2.5-2.5V15h5a2 2 0 0 0 2-2.3l-1.2-7A2 2 0 0 0 17.3 4H7"],
  };

  // Creating elements. Strings become text; only a sentence's sanitized HTML is parsed.

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [attribute, value] of Object.entries(attributes ?? {})) {
      if (typeof value === "function") made.addEventListener(attribute, value);
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(attribute, value === true ? "" : value);
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return made;
  }

  function icon(name) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    for (const drawing of DRAWINGS[name]) {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", drawing);
      svg.append(path);
    }
    return svg;
  }

  function iconButton(name, label, attributes) {
    return element("button", { type: "button", class: "quiet", "aria-label": label, title: label, ...attributes }, icon(name));
  }

  function followable(address) {
    try {
      return /^https?:$/.test(new URL(address).protocol);
    } catch {
      return false;
    }
  }

  /** A link, or plain text. Links within the site stay in this tab, where the conversation continues. */
  function bookLink(url, text) {
    if (!followable(url)) return element("span", {}, text);
    const elsewhere = new URL(url).origin !== location.origin;
    return element("a", { href: url, rel: "noopener", target: elsewhere && "_blank" }, text);
  }

  const address = (url) => String(url ?? "").replace(/:~:.*$/, "").replace(/^(https?|file):\/\//, "");

  // A page may require that parsed HTML comes from a named policy (Trusted Types).
  let policy = { createHTML: (text) => text };
  try {
    policy = window.trustedTypes?.createPolicy("docent-widget", policy) ?? policy;
  } catch {
    // The page does not allow this policy; sentences are then shown as text.
  }

  function parseSentence(sentence) {
    const template = document.createElement("template");
    try {
      template.innerHTML = policy.createHTML(sentence.html || "");
    } catch {
      template.content.replaceChildren();
    }
    const { content } = template;
    if (!content.hasChildNodes()) content.append(sentence.text);
    for (const picture of content.querySelectorAll("img")) picture.replaceWith(picture.alt);
    for (const link of content.querySelectorAll("a")) link.replaceWith(bookLink(link.getAttribute("href"), link.textContent));
    return content;
  }

  // Talking to the server.

  const base = (() => {
    try {
      if (settings.api) return new URL(settings.api.replace(/\/*$/, "/"), location.href);
      return new URL(".", script.src);
    } catch {
      return new URL("/", location.href);
    }
  })();

  async function send(method, path, body, signal) {
    const headers = body === undefined ? {} : { "Content-Type": "application/json" };
    if (settings.key) headers.Authorization = `Bearer ${settings.key}`;
    if (session) headers["X-Docent-Session-Key"] = session.key;
    const sent = body === undefined ? undefined : JSON.stringify(body);
    let response;
    try {
      response = await fetch(new URL(`api/v1/${path}`, base), { method, headers, signal, body: sent, credentials: "omit" });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw { message: "Docent cannot be reached right now." };
    }
    if (response.ok) return response;
    const told = await response.json().catch(() => ({}));
    throw {
      message: told.message || `The server returned an error (${response.status}).`,
      status: response.status,
      retryAfter: Number.parseInt(response.headers.get("retry-after") ?? "", 10) || 0,
    };
  }

  async function stream(body, onEvent, signal) {
    const response = await send("POST", "ask", { ...body, stream: true, html: true }, signal);
    // A proxy may have turned the stream into one response.
    if ((response.headers.get("content-type") ?? "").includes("application/json")) return onEvent("done", await response.json());
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      rest += decoder.decode(value, { stream: !done }).replaceAll("\r", "");
      const blocks = rest.split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const field = (name) => block.split("\n").filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim()).join("\n");
        const [event, data] = [field("event"), field("data")];
        if (!data) continue; // A heartbeat.
        if (event === "error") throw JSON.parse(data);
        onEvent(event, JSON.parse(data));
        if (event === "done") return;
      }
      if (done) throw { message: "The connection ended before the answer was complete." };
    }
  }

  // State stored for this tab, so that the conversation continues from page to page.

  const memory = {
    get: (name) => {
      try {
        return sessionStorage.getItem(`docent.${name}:${base}`);
      } catch {
        return null;
      }
    },
    set: (name, value) => {
      try {
        if (value) sessionStorage.setItem(`docent.${name}:${base}`, value);
        else sessionStorage.removeItem(`docent.${name}:${base}`);
      } catch {
        // Storage is blocked; every page starts a new conversation.
      }
    },
  };

  // The panel.

  const title = settings.title || "Ask the book";
  const placeholder = settings.placeholder || "Ask a question";
  const host = document.createElement("docent-widget");
  const shadow = host.attachShadow({ mode: "open" });
  let session = rememberedSession();
  let restored = false;
  let answering = null;
  let selection = null;
  let opener = null;
  let shownCard = null;

  const launcher = element("button", { type: "button", class: "launcher", "aria-expanded": "false", "aria-controls": "panel", "aria-haspopup": "dialog", "data-testid": "widget-button", click: () => (isOpen() ? close() : open()) }, icon("book"), title);
  const askSelection = element("button", { type: "button", class: "ask-selection", hidden: true, "data-testid": "widget-ask-selection", pointerdown: (event) => event.preventDefault(), click: useSelection }, icon("book"), "Ask about this");
  const thread = element("div", { class: "thread", role: "log", tabindex: "0", "aria-label": "Conversation", "data-testid": "widget-thread" });
  const body = element("div", { class: "body" }, thread);
  const chip = element("div", { class: "chip", hidden: true, "data-testid": "widget-selection" });
  const question = element("textarea", { rows: "1", "aria-label": "Your question", placeholder, enterkeyhint: "send", "data-testid": "widget-question", input: measure, keydown: onQuestionKey });
  const count = element("span", { class: "count", "data-testid": "widget-count" });
  const sendButton = element("button", { type: "submit", class: "send", "aria-label": "Send", title: "Send (Enter)", "data-testid": "widget-send" }, icon("send"));
  const stopButton = element("button", { type: "button", class: "send", "aria-label": "Stop answering", hidden: true, "data-testid": "widget-stop", click: () => answering?.abort() }, icon("stop"));
  const form = element("form", { "aria-label": title, submit: onSubmit }, chip, element("div", { class: "ask-row" }, question, sendButton, stopButton), count);
  const panel = element(
    "div",
    { class: "panel", id: "panel", role: "dialog", "aria-label": title, hidden: true, "data-testid": "widget-panel", keydown: onPanelKey },
    element(
      "div",
      { class: "head" },
      element("h2", {}, title),
      iconButton("fresh", "New conversation", { "data-testid": "widget-new", click: newConversation }),
      iconButton("close", "Close", { "data-testid": "widget-close", click: () => close() }),
    ),
    body,
    form,
  );

  const isOpen = () => !panel.hidden;

  function open(moveFocus = true) {
    if (!isOpen()) opener = shadow.activeElement ?? document.activeElement;
    panel.hidden = false;
    panel.setAttribute("aria-modal", String(window.matchMedia(NARROW).matches));
    launcher.setAttribute("aria-expanded", "true");
    memory.set("open", "yes");
    if (moveFocus) question.focus();
    if (!restored) restore();
  }

  function close() {
    if (!isOpen()) return;
    hideCard();
    panel.hidden = true;
    launcher.setAttribute("aria-expanded", "false");
    memory.set("open", null);
    // Return the focus to where it was, or to the launcher if that element is gone.
    const back = opener && opener !== document.body && opener.isConnected && opener !== askSelection && !panel.contains(opener) ? opener : launcher;
    back.focus();
  }

  function ask(text) {
    open();
    question.value = String(text ?? "");
    measure();
    // While another answer is being written, the question stays in the box.
    submit(question.value);
  }

  function onPanelKey(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      if (shownCard) hideCard(true);
      else close();
    } else if (event.key === "Tab") {
      keepFocusInside(event);
    }
  }

  function keepFocusInside(event) {
    const reachable = (root) => [...root.querySelectorAll("button, a[href], textarea, [tabindex='0']")].filter((one) => one.getClientRects().length > 0);
    const active = shadow.activeElement;
    const inCard = shownCard?.card.contains(active);
    // Tab moves from a mark into its card, and from either end of the card back to the mark.
    if (shownCard && active === shownCard.mark && !event.shiftKey) {
      event.preventDefault();
      reachable(shownCard.card)[0].focus();
      return;
    }
    const stops = reachable(inCard ? shownCard.card : panel).filter((one) => inCard || !shownCard?.card.contains(one));
    const last = event.shiftKey ? stops[0] : stops[stops.length - 1];
    const leavesFromTheTop = event.shiftKey && inCard && active === shownCard.card;
    if (active !== last && !leavesFromTheTop) return;
    event.preventDefault();
    if (inCard) hideCard(true);
    else stops[event.shiftKey ? stops.length - 1 : 0].focus();
  }

  function onQuestionKey(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit(question.value);
  }

  function onSubmit(event) {
    event.preventDefault();
    submit(question.value);
  }

  function measure() {
    const length = [...question.value.trim()].length;
    count.textContent = length > LIMIT * 0.85 ? `${length} of ${LIMIT} characters${length > LIMIT ? ", too long" : ""}` : "";
    question.style.height = "auto";
    question.style.height = `${question.scrollHeight}px`;
  }

  function submit(text) {
    const query = text.trim();
    if (answering || !query || [...query].length > LIMIT) return;
    question.value = "";
    measure();
    thread.querySelector(".welcome")?.remove();
    const turn = new Turn(query, selection);
    setSelection(null);
    thread.append(turn.root);
    scrollTo(turn.root);
    answer(turn);
  }

  /** Scrolls only the thread; `scrollIntoView` would also scroll the page behind it. */
  function scrollTo(turn) {
    thread.scrollTop += turn.getBoundingClientRect().top - thread.getBoundingClientRect().top;
  }

  async function answer(turn) {
    if (answering) return;
    const mine = (answering = new AbortController());
    setBusy(true);
    turn.begin();
    try {
      session ??= await beginSession(mine.signal);
      const asked = { query: turn.query, session_id: session.id, book: settings.book || undefined, module: settings.module || undefined, selection: turn.selection ?? undefined };
      await stream(asked, (event, data) => answering === mine && turn.receive(event, data), mine.signal);
    } catch (problem) {
      if (problem.status === 404) forgetSession();
      turn.failed(mine.signal.aborted ? { message: "Stopped before the end." } : problem);
    } finally {
      if (answering === mine) {
        answering = null;
        setBusy(false);
      }
    }
  }

  function setBusy(busy) {
    const focused = shadow.activeElement === sendButton || shadow.activeElement === stopButton;
    sendButton.hidden = busy;
    stopButton.hidden = !busy;
    if (focused) (busy ? stopButton : question).focus();
  }

  /** Creates a conversation and stores its key, without which it cannot be opened. */
  async function beginSession(signal) {
    const begun = await (await send("POST", "sessions", {}, signal)).json();
    memory.set("session", JSON.stringify({ id: begun.session_id, key: begun.session_key }));
    return rememberedSession() ?? { id: begun.session_id, key: begun.session_key };
  }

  function rememberedSession() {
    try {
      const { id, key } = JSON.parse(memory.get("session"));
      return id && key ? { id, key } : null;
    } catch {
      return null;
    }
  }

  function forgetSession() {
    session = null;
    memory.set("session", null);
  }

  function newConversation() {
    answering?.abort();
    answering = null;
    setBusy(false);
    forgetSession();
    hideCard();
    thread.replaceChildren();
    welcome();
    question.focus();
  }

  async function welcome() {
    const list = element("ul", {});
    thread.append(element("div", { class: "welcome" }, element("p", {}, "Answers come only from this book and cite the words that support them."), list));
    try {
      const { questions } = await (await send("GET", "suggestions?limit=3")).json();
      list.append(...questions.map((text) => element("li", {}, element("button", { type: "button", "data-testid": "widget-suggestion", click: () => {
        question.focus();
        submit(text);
      } }, text))));
    } catch {
      // Suggestions are optional.
    }
  }

  /** Shows the conversation that was started in this tab on an earlier page. */
  async function restore() {
    restored = true;
    if (session) {
      try {
        const asked = session;
        const stored = await (await send("GET", `sessions/${encodeURIComponent(asked.id)}?html=true&limit=20`)).json();
        if (session !== asked) return; // The user has started another one in the meantime.
        // Screen readers should not announce earlier turns.
        thread.setAttribute("aria-live", "off");
        const before = stored.turns.map(({ query, response }) => {
          const turn = new Turn(query, null);
          turn.finish(response);
          return turn.root;
        });
        thread.prepend(...before);
        if (before.length > 0) scrollTo(before[before.length - 1]);
        setTimeout(() => thread.removeAttribute("aria-live"), 500);
      } catch (problem) {
        if (problem.status === 404 || problem.status === 400) forgetSession();
      }
    }
    if (!thread.hasChildNodes()) welcome();
  }

  // One question and its answer.

  class Turn {
    constructor(query, selected) {
      this.query = query;
      this.selection = selected;
      this.sources = [];
      this.texts = [];
      this.badges = element("div", { class: "badges" });
      this.prose = element("div", { class: "prose" });
      this.progress = element("p", { class: "progress", "data-testid": "widget-progress" }, "Reading your question");
      this.after = element("div", { class: "after" });
      this.root = element(
        "div",
        { class: "turn", "data-testid": "widget-turn" },
        selected && element("blockquote", { class: "selected" }, selected.text),
        element("h3", { class: "asked" }, query),
        element("div", { "data-testid": "widget-answer" }, this.progress, this.badges, this.prose, this.after),
      );
      this.progress.hidden = true;
    }

    begin() {
      clearInterval(this.countdown);
      this.clear();
      this.badges.replaceChildren();
      this.after.replaceChildren();
      this.progress.textContent = "Reading your question";
      this.progress.hidden = false;
    }

    clear() {
      hideCard();
      this.prose.replaceChildren();
      this.texts = [];
    }

    receive(event, data) {
      if (event === "state" && PROGRESS[data.state]) this.progress.textContent = PROGRESS[data.state];
      else if (event === "sources") this.sources = data.sources ?? [];
      else if (event === "restart") this.clear();
      else if (event === "sentence") this.add(data.sentence, data.citations ?? []);
      else if (event === "done") this.finish(data);
    }

    add(sentence, citations) {
      this.texts.push(sentence.text);
      const content = parseSentence(sentence);
      const block = Boolean(content.querySelector("p, ul, ol, pre, table, blockquote, h1, h2, h3, h4, h5, h6"));
      for (const wide of content.querySelectorAll("pre, table")) wide.tabIndex = 0;
      const marks = sentence.citations.map((id) => citations.find((citation) => citation.id === id)).filter(Boolean).map((citation) => this.mark(citation));
      const words = element(block ? "div" : "span", { class: "words" }, content);
      const tail = [marks.length > 0 && element("span", { class: "marks" }, "\u2060", marks)];
      if (sentence.verdict === "unsupported") tail.push(" ", element("span", { class: "unsupported", "data-testid": "widget-unsupported" }, "not supported by the book"));
      const shown = element(block ? "div" : "span", { class: "sentence", "data-testid": "widget-sentence", "data-supported": String(sentence.supported) }, words);
      // The marks of a list go into its last item.
      (words.querySelector(":scope > :is(ul, ol):last-child > li:last-child") ?? shown).append(...tail.filter(Boolean));
      const last = this.prose.lastElementChild;
      if (block) this.prose.append(shown);
      else if (!sentence.new_paragraph && last?.tagName === "P") last.append(" ", shown);
      else this.prose.append(element("p", {}, shown));
    }

    mark(citation) {
      const source = this.sources.find((one) => one.chunk_id === citation.chunk_id);
      const where = [citation.page_title, citation.heading].filter(Boolean).join(", ");
      const mark = element("button", { type: "button", class: "mark", "aria-label": `Citation ${citation.id}: ${where}`, "aria-haspopup": "dialog", "aria-expanded": "false", "data-testid": "widget-citation" }, String(citation.id));
      mark.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && later(() => showCard(mark, citation, source), 120));
      mark.addEventListener("pointerleave", () => later(leaveCard, 260));
      mark.addEventListener("focus", () => mark.matches(":focus-visible") && !mark.dataset.closing && showCard(mark, citation, source));
      mark.addEventListener("blur", (event) => event.relatedTarget && !shownCard?.card.contains(event.relatedTarget) && shownCard?.mark === mark && hideCard());
      mark.addEventListener("click", (event) => {
        if (shownCard?.mark === mark && shownCard.pinned) return hideCard();
        showCard(mark, citation, source);
        shownCard.pinned = true;
        if (event.detail === 0) shownCard.card.focus();
      });
      return mark;
    }

    finish(response) {
      this.sources = response.sources ?? this.sources;
      const stopped = response.kind === "stopped";
      const abstained = !stopped && !response.grounded && response.sentences.length === 0;
      if (abstained || response.sentences.map((one) => one.text).join("\n") !== this.texts.join("\n")) {
        this.clear();
        for (const sentence of response.sentences) this.add(sentence, response.citations);
      }
      this.progress.hidden = true;
      if (stopped) return this.failed({ message: "Stopped before the end." });
      const badge = (text, testid, warn) => element("span", { class: warn ? "badge warn" : "badge", "data-testid": testid }, text);
      this.badges.replaceChildren(
        ...[
          response.grounded && badge(SCOPES[response.scope] ?? SCOPES.book, "widget-scope"),
          !response.grounded && response.kind !== "conversation" && badge("Not in the book", "widget-badge"),
          response.grounded && response.confidence !== "high" && badge("Loosely related", "widget-badge", true),
          response.degraded && badge("Answered without the model", "widget-badge", true),
        ].filter(Boolean),
      );
      this.after.replaceChildren(...(abstained ? this.nearest(response) : []), this.feedback(response.turn_id));
    }

    nearest(response) {
      const isNear = (one, index) => Number(one.similarity_score) >= NEAR && this.sources.findIndex((other) => other.url === one.url) === index;
      const near = this.sources.filter(isNear).slice(0, 3);
      const said = (response.answer ?? "").split(/\n\s*\n/)[0].trim() || "I don't have information about that in the book content.";
      const items = near.map((one) => element("li", {}, bookLink(one.url, one.breadcrumb.split(" > ").join(" › ")), element("span", { class: "address" }, `${address(one.url)} · similarity ${Number(one.similarity_score).toFixed(2)}`)));
      return [element("p", {}, said), ...(items.length > 0 ? [element("h3", {}, "The nearest sections"), element("ol", { class: "nearest", "data-testid": "widget-nearest" }, items)] : [])];
    }

    feedback(turnId) {
      const note = element("p", {});
      const thumbs = ["up", "down"].map((rating) =>
        iconButton(rating, rating === "up" ? "Good answer" : "Bad answer", { "aria-pressed": "false", "data-testid": `widget-feedback-${rating}`, click: async (event) => {
          for (const thumb of thumbs) thumb.setAttribute("aria-pressed", String(thumb === event.currentTarget));
          try {
            await send("POST", "feedback", { turn_id: turnId, rating });
            note.textContent = "Thank you.";
          } catch (problem) {
            note.textContent = problem.message;
          }
        } }),
      );
      return element("div", { class: "row", "aria-live": "off" }, thumbs, element("div", { role: "status" }, note));
    }

    failed(problem) {
      this.progress.hidden = true;
      let left = problem.retryAfter || 0;
      const retry = element("button", { type: "button", class: "plain", "aria-live": "off", "data-testid": "widget-retry", click: () => left <= 0 && answer(this) });
      const tick = () => {
        retry.textContent = left > 0 ? `Try again in ${left} s` : "Try again";
        retry.setAttribute("aria-disabled", String(left > 0));
        if (left <= 0) clearInterval(this.countdown);
      };
      tick();
      if (left > 0) {
        this.countdown = setInterval(() => {
          left -= 1;
          tick();
        }, 1000);
      }
      this.after.replaceChildren(element("div", { class: "problem", "data-testid": "widget-error" }, element("p", {}, problem.message || "Something went wrong."), retry));
    }
  }

  // The card with the quoted words. It covers the top or bottom of the thread, away from the mark.

  let timer = null;

  function later(run, delay) {
    clearTimeout(timer);
    timer = setTimeout(run, delay);
  }

  function leaveCard() {
    if (!shownCard || shownCard.pinned || shownCard.card.contains(shadow.activeElement) || shownCard.mark.matches(":focus-visible")) return;
    hideCard();
  }

  function showCard(mark, citation, source) {
    clearTimeout(timer);
    if (shownCard?.mark === mark) return;
    hideCard();
    const [before, after] = surroundings(citation, source);
    const path = (source?.heading_hierarchy?.length ? source.heading_hierarchy : [citation.heading]).filter((one) => one && one !== citation.page_title).join(" › ");
    const card = element(
      "div",
      { class: "card", role: "dialog", tabindex: "-1", "aria-label": `Citation ${citation.id}, ${citation.page_title}`, "data-testid": "widget-citation-card", pointerenter: () => clearTimeout(timer), pointerleave: () => later(leaveCard, 260) },
      element("header", {}, element("div", {}, element("strong", {}, citation.page_title), path && element("span", { class: "path" }, path)), iconButton("close", "Close citation", { click: () => hideCard(true) })),
      element("blockquote", { tabindex: "0" }, before, element("mark", {}, citation.quote), after),
      followable(citation.url) ? bookLink(citation.url, "Open in the book") : element("span", { class: "address" }, address(citation.url)),
    );
    const middle = body.getBoundingClientRect().top + body.clientHeight / 2;
    card.classList.toggle("top", mark.getBoundingClientRect().top > middle);
    body.append(card);
    mark.setAttribute("aria-expanded", "true");
    shownCard = { mark, card, pinned: false };
  }

  function hideCard(returnFocus = false) {
    if (!shownCard) return;
    const { mark, card } = shownCard;
    shownCard = null;
    const inside = card.contains(shadow.activeElement);
    card.remove();
    mark.setAttribute("aria-expanded", "false");
    if (!returnFocus || !inside) return;
    mark.dataset.closing = "yes";
    mark.focus();
    delete mark.dataset.closing;
  }

  /** The text before and after the quote; offsets count UTF-8 bytes. */
  function surroundings(citation, source) {
    const bytes = new TextEncoder().encode(source?.content ?? "");
    const text = (from, to) => new TextDecoder().decode(bytes.subarray(from, to));
    if (text(citation.start, citation.end) !== citation.quote) return ["", ""];
    const [before, after] = [text(0, citation.start), text(citation.end)];
    return [before.length > 160 ? `… ${before.slice(-160).replace(/^\S*\s/, "")}` : before, after.length > 160 ? `${after.slice(0, 160).replace(/\s\S*$/, "")} …` : after];
  }

  // Asking about selected text.

  function selectedText() {
    const chosen = window.getSelection();
    if (!chosen || chosen.isCollapsed || chosen.rangeCount === 0) return null;
    const active = document.activeElement;
    if (active?.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(active?.tagName ?? "")) return null;
    if (host.contains(chosen.anchorNode) || chosen.anchorNode === host) return null;
    const text = chosen.toString().trim();
    const length = [...text].length;
    return length >= 3 && length <= 2000 ? { text, range: chosen.getRangeAt(0) } : null;
  }

  function offerSelection() {
    const chosen = selectedText();
    askSelection.hidden = !chosen;
    if (!chosen) return;
    const rects = chosen.range.getClientRects();
    const at = rects[rects.length - 1] ?? chosen.range.getBoundingClientRect();
    if (at.bottom < 0 || at.top > window.innerHeight) {
      askSelection.hidden = true;
      return;
    }
    const size = askSelection.getBoundingClientRect();
    const top = at.bottom + 8 + size.height > window.innerHeight ? at.top - size.height - 8 : at.bottom + 8;
    askSelection.style.top = `${Math.max(8, top)}px`;
    askSelection.style.left = `${Math.max(8, Math.min(at.right - size.width / 2, document.documentElement.clientWidth - size.width - 8))}px`;
  }

  function useSelection() {
    const chosen = selectedText();
    askSelection.hidden = true;
    if (!chosen) return;
    open();
    setSelection({ text: chosen.text, url: location.href });
    // If the box already had the focus, the caret would stay in the page's selection.
    question.blur();
    question.focus();
  }

  function setSelection(chosen) {
    selection = chosen;
    chip.hidden = !chosen;
    question.placeholder = chosen ? "Ask about the selected text" : placeholder;
    if (!chosen) return;
    chip.replaceChildren(
      element("q", {}, chosen.text),
      iconButton("close", "Remove the selection", { "data-testid": "widget-selection-remove", click: () => {
        setSelection(null);
        question.focus();
      } }),
    );
  }

  function watchSelection() {
    let waiting = null;
    const soon = () => {
      clearTimeout(waiting);
      waiting = setTimeout(offerSelection, 180);
    };
    document.addEventListener("selectionchange", soon);
    window.addEventListener("scroll", () => !askSelection.hidden && offerSelection(), { passive: true, capture: true });
  }

  // Colors.

  function applyTheme() {
    const wished = /^(light|dark)$/.test(settings.theme ?? "") ? settings.theme : document.documentElement.dataset.theme;
    const system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    host.dataset.theme = /^(light|dark)$/.test(wished ?? "") ? wished : system;
    // The author chooses the accent color, so a readable text color is computed.
    const accent = luminance(launcher, "backgroundColor");
    const surface = luminance(panel, "backgroundColor");
    host.style.setProperty("--on-accent", accent === null || accent < 0.3 ? "#ffffff" : "#10201c");
    host.style.setProperty("--link", accent === null || contrast(accent, surface ?? 1) < 4.5 ? "var(--text)" : "var(--accent)");
  }

  function luminance(from, property) {
    const [red, green, blue] = (getComputedStyle(from)[property].match(/^rgba?\(([^)]+)\)/)?.[1] ?? "").split(/[ ,/]+/).map(Number);
    if (![red, green, blue].every(Number.isFinite)) return null;
    const [r, g, b] = [red, green, blue].map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  function contrast(one, other) {
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  }

  // Adding the widget to the page.

  function dress() {
    try {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(STYLE);
      shadow.adoptedStyleSheets = [sheet];
    } catch {
      shadow.append(element("style", {}, STYLE));
    }
  }

  function moveIn() {
    try {
      dress();
      host.dataset.position = settings.position === "left" ? "left" : "right";
      if (settings.accent) host.style.setProperty("--docent-accent", settings.accent);
      shadow.append(askSelection, launcher, panel);
      document.body.append(host);
      applyTheme();
      new MutationObserver(applyTheme).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
      window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
      window.matchMedia(NARROW).addEventListener("change", (narrow) => panel.setAttribute("aria-modal", String(narrow.matches)));
      watchSelection();
      // The panel stays open from page to page, except on phones, where it would cover the page.
      if (memory.get("open") && !window.matchMedia(NARROW).matches) open(false);
    } catch (error) {
      console.warn("The Docent widget failed to start.", error);
    }
  }

  window.Docent = { open: () => open(), close, ask };
  if (document.body) moveIn();
  else document.addEventListener("DOMContentLoaded", moveIn, { once: true });
})();
