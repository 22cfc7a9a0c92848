// Runs `docent ingest` after a build of VitePress. The build fails if the ingest fails.

import { spawnSync } from "node:child_process";

/** For `buildEnd` in `.vitepress/config`. */
export function docentIngest({ baseUrl, ingest, binary = "docent" } = {}) {
  return ({ root, srcDir, site, sitemap }) => {
    const published = baseUrl ?? (sitemap?.hostname && new URL(site.base, sitemap.hostname).href);
    if (!ingest && !published) {
      throw new Error("vitepress-docent: `docentIngest` needs the address of the site, so that citations can link to it: set `sitemap.hostname`, or `baseUrl`");
    }
    const { error, status } = spawnSync(binary, ["ingest", ...(ingest ?? [srcDir, "--layout", "vitepress", "--base-url", published])], { cwd: root, stdio: "inherit" });
    if (error?.code === "ENOENT") {
      throw new Error(`vitepress-docent: cannot find the program \`${binary}\`; install Docent, or set \`binary\` to its path`);
    }
    if (error) throw error;
    if (status !== 0) throw new Error(`vitepress-docent: \`${binary} ingest\` failed with exit status ${status}`);
  };
}
