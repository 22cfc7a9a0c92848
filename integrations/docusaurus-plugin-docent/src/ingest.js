// Runs `docent ingest` and throws if it fails.

const { spawnSync } = require("node:child_process");

exports.ingest = function ingest(binary, parameters, folder) {
  const { error, status } = spawnSync(binary, ["ingest", ...parameters], { cwd: folder, stdio: "inherit" });
  if (error?.code === "ENOENT") {
    throw new Error(`docusaurus-plugin-docent: cannot find the program \`${binary}\`; install Docent, or set \`binary\` to its path`);
  }
  if (error) throw error;
  if (status !== 0) throw new Error(`docusaurus-plugin-docent: \`${binary} ingest\` failed with exit status ${status}`);
};
