// The options of the plugin: their types and defaults.

const isText = (value) => typeof value === "string";
const isSwitch = (value) => typeof value === "boolean";

const OPTIONS = {
  url: { fits: (value) => isText(value) && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol), wanted: 'the address of your Docent server, such as "https://docent.example.org"', required: true },
  title: { fits: isText, wanted: "a string" },
  placeholder: { fits: isText, wanted: "a string" },
  accent: { fits: isText, wanted: "a CSS color", preset: "var(--ifm-color-primary)" },
  search: { fits: isSwitch, wanted: "true or false", preset: true },
  widget: { fits: isSwitch, wanted: "true or false", preset: true },
  ingest: { fits: (value) => isSwitch(value) || (Array.isArray(value) && value.every(isText)), wanted: "true, false or the arguments of `docent ingest` as a list of strings", preset: false },
  binary: { fits: isText, wanted: "the name or path of the program `docent`", preset: "docent" },
};

exports.validateOptions = function validateOptions({ id = "default", ...given }) {
  for (const name of Object.keys(given)) {
    if (!(name in OPTIONS)) throw new Error(`docusaurus-plugin-docent: unknown option \`${name}\`; the options are ${Object.keys(OPTIONS).join(", ")}`);
  }
  const options = { id };
  for (const [name, { fits, wanted, required, preset }] of Object.entries(OPTIONS)) {
    const value = given[name] ?? preset;
    if (value === undefined ? required : !fits(value)) throw new Error(`docusaurus-plugin-docent: \`${name}\` must be ${wanted}`);
    options[name] = value;
  }
  return options;
};
