// Talk to the server: JSON requests, and the stream of an answer.
//
// Invariant: whatever goes wrong, the caller gets a `Problem` whose message can be
// shown to a reader; nothing else is thrown, apart from the caller's own abort.

/** Why a request failed, in words, with what the reader can do about it. */
export class Problem extends Error {
  constructor(message, { code = "internal_error", status = 0, retryAfter = null } = {}) {
    super(message);
    this.name = "Problem";
    this.code = code;
    this.status = status;
    /** Seconds to wait before trying again, when the server named them. */
    this.retryAfter = retryAfter;
  }
}

const KEY = "docent.key";
let key = remembered();

/** Keeps the access key for this tab only; it should not outlive the visit. */
export function useKey(value) {
  key = value;
  try {
    sessionStorage.setItem(KEY, value);
  } catch {
    // Then the key lasts as long as the page.
  }
}

/** Asks and hands every event on as it arrives; resolves when the answer is complete. */
export async function ask(question, { signal, onEvent }) {
  const response = await send("POST", "ask", { ...question, stream: true, html: true }, signal);
  // A proxy, or a server without streaming, may answer in one piece.
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

export const createSession = (signal) => request("POST", "sessions", {}, signal);
export const loadSession = (id) => request("GET", `sessions/${encodeURIComponent(id)}?html=true`);
export const renameSession = (id, title) => request("PATCH", `sessions/${encodeURIComponent(id)}`, { title });
export const deleteSession = (id) => request("DELETE", `sessions/${encodeURIComponent(id)}`);
export const sendFeedback = (feedback) => request("POST", "feedback", feedback);
export const loadStatus = () => request("GET", "status");
export const loadModules = () => request("GET", "modules");
export const loadSuggestions = (limit) => request("GET", `suggestions?limit=${limit}`);

/** The conversation as a file. It is fetched rather than linked to, so that a key can travel. */
export async function exportSession(id, format) {
  const response = await send("GET", `sessions/${encodeURIComponent(id)}/export?format=${format}`);
  return response.blob();
}

/**
 * The events of a stream. Follows the event-stream format: a chunk may end anywhere,
 * lines end in LF, CR or CRLF, lines that start with a colon are heartbeats.
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
      // A CR at the very end may be half of a CRLF; it waits for the next chunk.
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

async function request(method, path, body, signal) {
  const response = await send(method, path, body, signal);
  return response.status === 204 ? null : json(response);
}

async function send(method, path, body, signal) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers.Authorization = `Bearer ${key}`;
  let response;
  try {
    // Relative to the page, so that Docent also works below a path of another site.
    response = await fetch(new URL(`api/v1/${path}`, document.baseURI), {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem("Docent cannot be reached. Check your connection, or whether the server is running.", {
      code: "unreachable",
    });
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw problemFrom(told, response.status, response.headers.get("retry-after"));
}

function problemFrom(body, status, retryAfter) {
  const seconds = Number.parseInt(retryAfter ?? "", 10);
  return new Problem(body.message || `The server answered with an error (${status}).`, {
    code: body.error,
    status,
    retryAfter: Number.isFinite(seconds) && seconds > 0 ? seconds : null,
  });
}

async function json(response) {
  try {
    return await response.json();
  } catch {
    throw new Problem("The server's answer could not be read.", { status: response.status });
  }
}

function parsed(data) {
  try {
    return JSON.parse(data);
  } catch {
    throw new Problem("The server's answer could not be read.");
  }
}

function interrupted() {
  return new Problem("The connection ended before the answer was complete.", { code: "interrupted" });
}

function remembered() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}
