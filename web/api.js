// Talks to the server: JSON requests and streamed answers.
//
// Invariant: every failure is thrown as a `Problem` whose message can be shown to the
// user, except when the caller aborts the request.

import { recall, remember } from "./memory.js";

/** A failed request, with a message for the user. */
export class Problem extends Error {
  constructor(message, { code = "internal_error", status = 0, retryAfter = null } = {}) {
    super(message);
    this.name = "Problem";
    this.code = code;
    this.status = status;
    /** Seconds to wait before retrying, if the server sent them. */
    this.retryAfter = retryAfter;
  }
}

const KEY = "docent.key";
let key = recall(KEY);
let base = null;
let credentials = "same-origin";

/** Stores the API key for this tab only. */
export function useKey(value) {
  key = value;
  remember(KEY, value);
}

/** For the widget, whose page belongs to another site: uses the server at this URL, without cookies. */
export function connect(url, itsKey) {
  base = url;
  key = itsKey;
  credentials = "omit";
}

export const hasKey = () => Boolean(key);

/**
 * Exchanges the key for the read-only cookie, because links to the book's pages cannot
 * carry a key. Fails if the key is wrong.
 */
export const openPages = () => request("POST", "pass");

/** Asks a question and passes on every event; resolves when the answer is complete. */
export async function ask(question, { signal, onEvent, sessionKey }) {
  const response = await send("POST", "ask", { ...question, stream: true, html: true }, { signal, sessionKey });
  // A proxy, or a server without streaming, may send the answer as one response.
  if (!(response.headers.get("content-type") ?? "").includes("text/event-stream")) {
    onEvent("done", await json(response));
    return;
  }
  let complete = false;
  try {
    for await (const { event, data } of events(response.body)) {
      if (event === "error") throw problemFrom(data, data.status_code ?? 500, null);
      onEvent(event, data);
      complete ||= event === "done";
      if (complete) return;
    }
  } catch (error) {
    if (error instanceof Problem || signal?.aborted) throw error;
    throw interrupted();
  }
  throw interrupted();
}

// A conversation is `{ id, key }`; the key gives full or read-only access.
const sessionPath = (id, rest = "") => `sessions/${encodeURIComponent(id)}${rest}`;

export const createSession = (signal) => request("POST", "sessions", {}, { signal });
export const renameSession = ({ id, key }, title) => request("PATCH", sessionPath(id), { title }, { sessionKey: key });
export const deleteSession = ({ id, key }) => request("DELETE", sessionPath(id), undefined, { sessionKey: key });
export const shareSession = ({ id, key }) => request("POST", sessionPath(id, "/share"), undefined, { sessionKey: key });
export const unshareSession = ({ id, key }) => request("DELETE", sessionPath(id, "/share"), undefined, { sessionKey: key });

/** The last turns of a conversation, or those before `before`. Pass `earlier` of the response to go further back. */
export function loadSession({ id, key }, before = null) {
  const page = before === null ? "" : `&before=${before}`;
  return request("GET", sessionPath(id, `?html=true&limit=20${page}`), undefined, { sessionKey: key });
}
export const sendFeedback = (feedback) => request("POST", "feedback", feedback);
export const loadStatus = () => request("GET", "status");
/** Pages and sections for what was typed so far, in a part of the book or everywhere. */
export const suggest = (typed, part = {}, signal) => request("GET", `suggest?${parameters({ q: typed, ...part })}`, undefined, { signal });
export const loadPage = (id) => request("GET", `page?${new URLSearchParams({ id })}`);
export const loadModules = () => request("GET", "modules");
/** Questions that the book, or a part of it, answers; with `page`, and `heading`, those of a page after a heading. */
export const loadSuggestions = (limit, about = {}) => request("GET", `suggestions?${parameters({ limit, ...about })}`);

/** Query parameters; those without a value are left out. */
function parameters(values) {
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value));
}

/** The conversation as a file. It is fetched instead of linked, because a link cannot carry a key. */
export async function exportSession({ id, key }, format) {
  const response = await send("GET", sessionPath(id, `/export?format=${format}`), undefined, { sessionKey: key });
  return response.blob();
}

/**
 * The events of a stream in the event-stream format: a chunk may end anywhere, lines end
 * in LF, CR or CRLF, and lines that start with a colon are heartbeats.
 */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = "message";
  let data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      rest += value ?? "";
      // A CR at the very end may be half of a CRLF; wait for the next chunk.
      const lines = rest.split(done ? /\r\n|\r|\n/ : /\r\n|\n|\r(?!$)/);
      rest = done ? "" : lines.pop();
      for (const line of done ? [...lines, ""] : lines) {
        if (line === "") {
          if (data.length > 0) yield { event, data: parsed(data.join("\n")) };
          event = "message";
          data = [];
        } else if (line.startsWith("event:")) {
          event = line.slice(6).trim();
        } else if (line.startsWith("data:")) {
          data.push(line.slice(5).replace(/^ /, ""));
        }
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

export async function request(method, path, body, options) {
  const response = await send(method, path, body, options);
  return response.status === 204 ? null : json(response);
}

export async function send(method, path, body, { signal, sessionKey } = {}) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers.Authorization = `Bearer ${key}`;
  if (sessionKey) headers["X-Docent-Session-Key"] = sessionKey;
  let response;
  try {
    // The chat page's requests are relative to it, so that Docent also works under a path of another site.
    response = await fetch(new URL(`api/v1/${path}`, base ?? document.baseURI), {
      method,
      headers,
      signal,
      credentials,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem("Docent cannot be reached right now. Check your connection, or try again later.", {
      code: "unreachable",
    });
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw problemFrom(told, response.status, response.headers.get("retry-after"));
}

function problemFrom(body, status, retryAfter) {
  const seconds = Number.parseInt(retryAfter ?? "", 10);
  return new Problem(body.message || `The server returned an error (${status}).`, {
    code: body.error,
    status,
    retryAfter: Number.isFinite(seconds) && seconds > 0 ? seconds : null,
  });
}

async function json(response) {
  try {
    return await response.json();
  } catch {
    throw new Problem("The server sent an invalid response.", { status: response.status });
  }
}

function parsed(data) {
  try {
    return JSON.parse(data);
  } catch {
    throw new Problem("The server sent an invalid response.");
  }
}

function interrupted() {
  return new Problem("The connection ended before the answer was complete.", { code: "interrupted" });
}
