// The lists next to the question of the chat page: which part of the book to search.
//
// Invariant: a list is only shown if there is something to choose.

import { element } from "./elements.js";

export class PartChoice {
  #selects;

  /** `form` has the lists; the modules, versions and locales are those of `GET /api/v1/modules`. */
  constructor(form, { modules = [], versions = [], locales = [] }) {
    this.#selects = Object.fromEntries(["module", "version", "locale"].map((name) => [name, form.querySelector(`#${name}`)]));
    this.#offerModules(modules);
    this.#offerEditions("version", versions);
    this.#offerEditions("locale", locales);
  }

  /** The book, the module, the version and the locale to search; undefined where everything or the default is searched. */
  get chosen() {
    const { module, version, locale } = this.#selects;
    const part = module.selectedOptions[0]?.dataset ?? {};
    return { book: part.book, module: part.module, version: version.value || undefined, locale: locale.value || undefined };
  }

  #offerModules(modules) {
    const option = ({ name, book, label }) => {
      const value = book === undefined ? name : `${book}/${name}`;
      return element("option", { value, "data-module": name, "data-book": book }, label || name);
    };
    const books = [...new Set(modules.map(({ book }) => book))].filter((book) => book !== undefined);
    const groups = books.map((book) =>
      element(
        "optgroup",
        { label: book },
        element("option", { value: book, "data-book": book }, `All of ${book}`),
        modules.filter((module) => module.book === book).map(option),
      ),
    );
    const everything = element("option", { value: "" }, books.length > 0 ? "All books" : "Whole book");
    this.#offer("module", [everything, ...(books.length > 0 ? groups : modules.map(option))], modules.length);
  }

  /** The versions or the locales, the default first. */
  #offerEditions(name, variants) {
    const names = [...new Set(variants.map((variant) => variant.name))];
    // The books of an index may have different defaults.
    const defaults = new Set(variants.filter((variant) => variant.default).map((variant) => variant.name));
    const [first, others] = defaults.size === 1 ? [names[0], names.slice(1)] : [`Default ${name}`, names];
    const options = others.map((text) => element("option", { value: text }, text));
    this.#offer(name, [element("option", { value: "" }, first), ...options, element("option", { value: "all" }, `All ${name}s`)], names.length);
  }

  #offer(name, options, count) {
    const select = this.#selects[name];
    select.replaceChildren(...options);
    select.parentElement.hidden = count < 2;
  }
}
