"""Adds Docent's widget to every page of an MkDocs site, and ingests the docs after a build if asked to.

A wrong option and a failed ingest stop the build.
"""

import os
import subprocess
from html import escape

from mkdocs.config import base
from mkdocs.config import config_options as option
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority

# The widget follows `data-theme` of <html>; Material and MkDocs' own theme say it in other ways.
SCRIPT = """<script>
(() => {
  const root = document.documentElement, { body } = document;
  const follow = () => { root.dataset.theme = body.dataset.mdColorScheme === "slate" || root.dataset.bsTheme === "dark" ? "dark" : "light"; };
  follow();
  new MutationObserver(follow).observe(root, { attributeFilter: ["data-bs-theme", "data-md-color-scheme"], subtree: true });
})();
</script>"""


class Arguments(option.OptionallyRequired):
    """`true`, `false`, or a list of strings."""

    def run_validation(self, value):
        if isinstance(value, bool) or (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            return value
        raise base.ValidationError("Expected true, false or the arguments of `docent ingest` as a list of strings.")


class DocentConfig(base.Config):
    url = option.URL()
    title = option.Optional(option.Type(str))
    placeholder = option.Optional(option.Type(str))
    accent = option.Optional(option.Type(str))
    search = option.Type(bool, default=True)
    ingest = Arguments(default=False)
    binary = option.Type(str, default="docent")


class DocentPlugin(BasePlugin[DocentConfig]):
    is_serving = False

    def on_startup(self, *, command, dirty):
        self.is_serving = command == "serve"

    def on_config(self, config):
        if not self.config.url:
            raise PluginError('docent: `url` must be the address of your Docent server, such as "https://docent.example.org"')
        if self.config.ingest is True and not config.site_url:
            raise PluginError("docent: `ingest: true` needs `site_url`, so that citations can link to the pages")

    # Last, so that no other plugin moves the script to another address.
    @event_priority(-100)
    def on_post_page(self, output, *, page, config):
        return self.with_widget(output, config)

    @event_priority(-100)
    def on_post_template(self, output_content, *, template_name, config):
        return self.with_widget(output_content, config) if template_name.endswith(".html") else output_content

    def with_widget(self, html, config):
        end = html.rfind("</body>")
        return html if end < 0 else html[:end] + self.tag(config) + SCRIPT + html[end:]

    def tag(self, config):
        own = self.config
        # Material calls the locale a language; mike sets the version.
        language = config.theme.get("language") or config.theme.locale
        settings = {
            "title": own.title,
            "placeholder": own.placeholder,
            "accent": own.accent,
            "search": None if own.search else "off",
            "locale": str(language) if language else None,
            "version": os.environ.get("MIKE_DOCS_VERSION"),
        }
        attributes = "".join(f' data-{name}="{escape(value)}"' for name, value in settings.items() if value)
        return f'<script src="{escape(own.url.rstrip("/"))}/widget.js"{attributes} async></script>'

    def on_post_build(self, *, config):
        given = self.config.ingest
        if not given or self.is_serving:
            return
        arguments = [config.docs_dir, "--layout", "mkdocs", "--base-url", config.site_url] if given is True else given
        binary = self.config.binary
        folder = os.path.dirname(config.config_file_path) or "."
        try:
            status = subprocess.run([binary, "ingest", *arguments], cwd=folder).returncode
        except FileNotFoundError:
            raise PluginError(f"docent: cannot find the program `{binary}`; install Docent, or set `binary` to its path") from None
        if status != 0:
            raise PluginError(f"docent: `{binary} ingest` failed with exit status {status}")
