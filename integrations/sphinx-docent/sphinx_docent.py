"""Adds Docent's widget to every HTML page of a Sphinx project, and ingests the docs after a build if asked to.

A wrong setting and a failed ingest stop the build.
"""

import os
import subprocess

from sphinx.errors import ConfigError, ExtensionError

PAGES = {"html", "dirhtml", "singlehtml"}

# The widget follows `data-theme` of <html>. Furo has it on <body>; themes without a dark mode are light.
SCRIPT = """
addEventListener("DOMContentLoaded", () => {
  const root = document.documentElement, { body } = document;
  if (root.dataset.theme) return;
  const follow = () => { root.dataset.theme = body.dataset.theme ?? "light"; };
  follow();
  new MutationObserver(follow).observe(body, { attributeFilter: ["data-theme"] });
});
"""


def setup(app):
    for name, preset, types in [
        ("url", None, [str]),
        ("title", None, [str]),
        ("placeholder", None, [str]),
        ("accent", None, [str]),
        ("search", True, [bool]),
        ("ingest", False, [bool, list, tuple]),
        ("binary", "docent", [str]),
    ]:
        app.add_config_value(f"docent_{name}", preset, "html", types)
    app.connect("builder-inited", add_widget)
    app.connect("build-finished", ingest)
    return {"version": "0.1.0", "parallel_read_safe": True, "parallel_write_safe": True}


def add_widget(app):
    if app.builder.name not in PAGES:
        return
    config = app.config
    url = config.docent_url
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise ConfigError('docent_url must be the address of your Docent server, such as "https://docent.example.org"')
    if config.docent_ingest is True and not published_at(config):
        raise ConfigError("docent_ingest = True needs html_baseurl, so that citations can link to the pages")
    if config.docent_ingest is True and app.builder.name != "html":
        raise ConfigError(f"docent_ingest = True needs the builder html, not {app.builder.name}; list the arguments of `docent ingest` instead")
    settings = {
        "title": config.docent_title,
        "placeholder": config.docent_placeholder,
        "accent": config.docent_accent,
        "search": None if config.docent_search else "off",
        "locale": config.language,
        "version": os.environ.get("READTHEDOCS_VERSION") or config.version,
    }
    attributes = {f"data-{name}": value for name, value in settings.items() if value}
    app.add_js_file(f"{url.rstrip('/')}/widget.js", loading_method="async", **attributes)
    app.add_js_file(None, body=SCRIPT)


def published_at(config):
    return config.html_baseurl or os.environ.get("READTHEDOCS_CANONICAL_URL")


def ingest(app, exception):
    given = app.config.docent_ingest
    if exception or not given or app.builder.name not in PAGES:
        return
    arguments = [str(app.srcdir), "--layout", "sphinx", "--base-url", published_at(app.config)] if given is True else given
    binary = app.config.docent_binary
    try:
        status = subprocess.run([binary, "ingest", *arguments], cwd=app.confdir).returncode
    except FileNotFoundError:
        raise ExtensionError(f"cannot find the program `{binary}`; install Docent, or set docent_binary to its path") from None
    if status != 0:
        raise ExtensionError(f"`{binary} ingest` failed with exit status {status}")
