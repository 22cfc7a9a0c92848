// The plugin: checks its options, adds the theme components, and ingests the docs after a build if asked to.
//
// Invariant: a wrong option and a failed ingest stop the build with a message that says what to do.

const fs = require("node:fs");
const path = require("node:path");
const { readDefaultCodeTranslationMessages } = require("@docusaurus/theme-translations");
const { ingest } = require("./ingest");
const { validateOptions } = require("./options");

module.exports = function docent({ siteDir, i18n }, options) {
  return {
    name: "docusaurus-plugin-docent",
    getThemePath: () => path.join(__dirname, "theme"),

    // Docusaurus has translations of "Search" in the catalogue of its own search bar.
    getDefaultCodeTranslationMessages: () =>
      readDefaultCodeTranslationMessages({ locale: i18n.currentLocale, name: "theme-search-algolia" }),

    contentLoaded({ actions }) {
      const { url, title, placeholder, accent, search, widget } = options;
      actions.setGlobalData({ url, title, placeholder, accent, search, widget });
      warnOfOwnRoot(siteDir);
    },

    // Called once for each locale.
    postBuild({ plugins, siteConfig }) {
      if (!options.ingest || i18n.currentLocale !== i18n.defaultLocale) return;
      ingest(options.binary, options.ingest === true ? allDocs(plugins, siteConfig.url, siteDir) : options.ingest, siteDir);
    },
  };
};

module.exports.validateOptions = ({ options }) => validateOptions(options);

module.exports.getSwizzleConfig = () => {
  const safe = { eject: "safe", wrap: "safe" };
  return {
    components: {
      SearchBar: { actions: safe, description: "The button that opens Docent's search" },
      DocentWidget: { actions: safe, description: "Loads Docent's script and tells it the locale and version of the page" },
      Root: { actions: { eject: "unsafe", wrap: "safe" }, description: "Adds DocentWidget to every page" },
    },
  };
};

/**
 * What to ingest, and where the latest version of it is published: all versions and locales. Docent finds them in the
 * usual folders; if the docs are elsewhere, it reads the latest version in the default locale.
 */
function allDocs(plugins, site, siteDir) {
  const docs = plugins.filter(({ name }) => name === "docusaurus-plugin-content-docs");
  if (docs.length !== 1) {
    throw new Error(`docusaurus-plugin-docent: \`ingest: true\` reads the docs of a site, but this site has ${docs.length} docs plugins; list the arguments of \`docent ingest\` instead`);
  }
  const latest = docs[0].content.loadedVersions.find(({ isLast }) => isLast);
  const { id, path: folder } = docs[0].options;
  const isUsual = id === "default" && path.resolve(siteDir, folder) === path.join(siteDir, "docs");
  return [isUsual ? siteDir : latest.contentPath, "--layout", "docusaurus", "--base-url", new URL(latest.path, site).href];
}

/** A site's own Root replaces the plugin's, and with it the widget. */
function warnOfOwnRoot(siteDir) {
  const names = ["js", "jsx", "ts", "tsx"].flatMap((kind) => [`Root.${kind}`, `Root/index.${kind}`]);
  const own = names.map((name) => path.join(siteDir, "src/theme", name)).find((file) => fs.existsSync(file));
  if (own && !/@theme-original\/Root|DocentWidget/.test(fs.readFileSync(own, "utf8"))) {
    console.warn(`docusaurus-plugin-docent: ${path.relative(siteDir, own)} does not render <DocentWidget /> (from "@theme/DocentWidget"), so there is no widget and no search`);
  }
}
