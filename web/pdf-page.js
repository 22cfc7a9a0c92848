// The pages of a PDF as they are printed, in the reading pane, with boxes around the quoted words.
//
// The reading pane loads this script for PDFs.
//
// Invariant: the text of every page stays in the pane, one press away, and is shown where a page cannot be drawn.

import { request } from "./api.js";
import { element } from "./elements.js";
import { recall, remember } from "./memory.js";

const VIEW = "docent.pdf-view";
// Pages without text that are not drawn, if there are more of them in a row.
const MOST_WITHOUT_TEXT = 50;

export class DrawnPages {
  #body;
  #page;
  #buttons;
  #onView;

  /** Draws the pages in `body`, which has the text of `page`; `onView` receives what to scroll to in another view. */
  constructor(body, page, onView) {
    this.#body = body;
    this.#page = page;
    this.#onView = onView;
    this.#group();
    const choice = (view, label) => element("button", { type: "button", class: "plain", "data-view": view, "data-testid": `pdf-${view}`, click: () => this.#choose(view) }, label);
    this.#buttons = [choice("pages", "Pages"), choice("text", "Text")];
    this.switch = element("div", { class: "pdf-view", role: "group", "aria-label": "Show the PDF as" }, this.#buttons);
    this.#show(recall(VIEW) ?? "pages");
  }

  /** What to scroll to for an element of the text: the words or the page in the drawing, if the text is not shown. */
  placeOf(target) {
    const sheet = target.closest(".sheet-text")?.parentElement;
    if (!sheet || this.#showsText(sheet)) return target;
    return (target.matches("mark, .quoted") && sheet.querySelector(".word-box")) || sheet;
  }

  /** Puts boxes around the words of these marks. Without them, the page is still there. */
  async box(marks) {
    const sheet = marks[0]?.closest(".sheet");
    if (!sheet) return;
    const own = marks.filter((mark) => sheet.contains(mark)).map((mark) => mark.textContent);
    const wanted = new URLSearchParams({ id: this.#page.document_id, page: sheet.dataset.page, words: own.join("\n") });
    const found = await request("GET", `page/words?${wanted}`).catch(() => null);
    if (!found) return;
    // Most pages have the same size.
    this.#body.style.setProperty("--page-shape", `${found.width} / ${found.height}`);
    sheet.querySelector(".drawn-page").append(...found.boxes.map(boxElement));
    if (found.boxes.length > 0) sheet.querySelector("img").alt += `. Marked: ${own.join(" ")}`;
  }

  /** Moves each page into an element of its own: its number, its drawing and its text. */
  #group() {
    let [sheet, last] = [null, 0];
    for (const node of [...this.#body.childNodes]) {
      const number = Number(/^page=(\d+)$/.exec(node.dataset?.anchor ?? "")?.[1]);
      if (!number) {
        sheet?.lastChild.append(node);
        continue;
      }
      if (number - last <= MOST_WITHOUT_TEXT) {
        for (let empty = last + 1; empty < number; empty += 1) {
          const label = element("p", { class: "pdf-page" }, `Page ${empty}`);
          node.before(this.#sheet(empty, label, "sheet is-empty"));
        }
      }
      const before = node.previousSibling;
      sheet = this.#sheet(number, node, "sheet");
      if (before) before.after(sheet);
      else this.#body.prepend(sheet);
      last = number;
    }
  }

  #sheet(number, label, kind) {
    const address = new URL(`.${this.#page.drawn_pages}${number}.svg`, document.baseURI).href;
    const picture = element("img", { loading: "lazy", alt: `Page ${number} of ${this.#page.title}`, src: address });
    const frame = element("div", { class: "drawn-page", "data-testid": "drawn-page" }, picture);
    const sheet = element("div", { class: kind, "data-page": number }, label, frame, element("div", { class: "sheet-text" }));
    picture.addEventListener("load", () => frame.style.setProperty("--page-shape", `${picture.naturalWidth} / ${picture.naturalHeight}`));
    picture.addEventListener("error", () => this.#showText(sheet));
    return sheet;
  }

  /** Shows the text of a page that cannot be drawn. */
  #showText(sheet) {
    sheet.classList.add("is-not-drawn");
    const quoted = sheet.querySelector("mark, .quoted");
    if (quoted) this.#onView(quoted);
  }

  #showsText(sheet) {
    return this.#body.classList.contains("shows-text") || sheet.classList.contains("is-not-drawn");
  }

  #choose(view) {
    const top = this.#body.getBoundingClientRect().top;
    const sheet = [...this.#body.querySelectorAll(".sheet")].find((one) => one.getBoundingClientRect().bottom > top + 1);
    this.#show(view);
    remember(VIEW, view);
    this.#onView(sheet?.querySelector("mark, .quoted") ?? sheet);
  }

  #show(view) {
    this.#body.classList.toggle("shows-text", view === "text");
    for (const button of this.#buttons) button.setAttribute("aria-pressed", String(button.dataset.view === view));
  }
}

function boxElement({ left, top, width, height }) {
  const box = element("span", { class: "word-box", "data-testid": "word-box" });
  const sides = Object.entries({ left, top, width, height });
  for (const [side, part] of sides) box.style.setProperty(side, `${100 * part}%`);
  return box;
}
