// The version and the locale of the page that the user is on, as far as the book has them.
//
// Invariant: a name that the book does not have is never sent, so that every question has an answer.

import { loadModules } from "./api.js";

let known = null;

/** The names of the book's versions and locales; loaded once. Without them, the defaults of the book apply. */
function loadKnown() {
  known ??= loadModules().catch(() => {
    known = null;
    return {};
  });
  return known;
}

/**
 * The version and the locale to ask about, for the attributes `data-version` and `data-locale`, either of which may be
 * missing; `all` stands for all of them.
 */
export async function editionHere(settings = {}) {
  const { versions = [], locales = [] } = await loadKnown();
  const version = chosen(versions, settings.version, versionsHere());
  const locale = chosen(locales, settings.locale, localesHere());
  return { ...(version && { version }), ...(locale && { locale }) };
}

/** The configured name, or else the first of those of the page, if the book has it. */
function chosen(variants, configured, names) {
  if (configured === "all") return configured;
  const found = (name) => name && variants.find((variant) => variant.name.toLowerCase() === name.toLowerCase())?.name;
  return [configured, ...names].map(found).find(Boolean);
}

/** What the generator of the site tells search engines, then the folders of the address. */
function versionsHere() {
  return [...meta("docusaurus_version"), ...meta("docsearch:version"), ...folders()];
}

function localesHere() {
  const { lang } = document.documentElement;
  return [...meta("docusaurus_locale"), ...meta("docsearch:language"), ...folders(), lang, lang.split("-")[0]];
}

function meta(name) {
  const content = document.querySelector(`meta[name="${name}"]`)?.content ?? "";
  return content.split(",").map((part) => part.trim());
}

function folders() {
  return location.pathname.split("/").filter(Boolean);
}
