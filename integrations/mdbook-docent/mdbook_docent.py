"""An mdBook preprocessor that adds Docent's widget to every chapter, and ingests the book if asked to.

A wrong setting and a failed ingest stop the build. Standard output is mdBook's: nothing but the book is written to it.
"""

import json
import subprocess
import sys
from html import escape

# The widget follows `data-theme` of <html>; mdBook's themes are classes.
SCRIPT = """<script>
(() => {
  const root = document.documentElement;
  const follow = () => { root.dataset.theme = /\\b(ayu|coal|navy)\\b/.test(root.className) ? "dark" : "light"; };
  follow();
  new MutationObserver(follow).observe(root, { attributeFilter: ["class"] });
})();
</script>"""

IS_TEXT = (lambda value: isinstance(value, str), "a string")
SETTINGS = {
    "url": (
        lambda value: isinstance(value, str) and value.startswith(("http://", "https://")),
        'the address of your Docent server, such as "https://docent.example.org"',
    ),
    "title": IS_TEXT,
    "placeholder": IS_TEXT,
    "accent": IS_TEXT,
    "search": (lambda value: isinstance(value, bool), "true or false"),
    "ingest": (
        lambda value: isinstance(value, bool) or (isinstance(value, list) and all(isinstance(one, str) for one in value)),
        "true, false or the arguments of `docent ingest` as a list of strings",
    ),
    "binary": (lambda value: isinstance(value, str), "the name or path of the program `docent`"),
}
# Settings of mdBook itself, in the same table.
OF_MDBOOK = {"command", "before", "after", "renderer", "renderers", "optional"}


def main():
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0 if sys.argv[2:] == ["html"] else 1)
    try:
        context, book = json.load(sys.stdin)
        settings = checked(context["config"]["preprocessor"]["docent"])
        ingest(context, settings)
        tag = f"\n\n{widget(context, settings)}\n{SCRIPT}\n"
        # mdBook 0.5 calls them items.
        add_to(book["items"] if "items" in book else book["sections"], tag)
        json.dump(book, sys.stdout)
    except Wrong as wrong:
        sys.exit(f"mdbook-docent: {wrong}")


class Wrong(Exception):
    """What is wrong, and what to do about it."""


def checked(settings):
    for name in settings.keys() - SETTINGS.keys() - OF_MDBOOK:
        raise Wrong(f"unknown setting `{name}` in [preprocessor.docent]; the settings are {', '.join(SETTINGS)}")
    for name, (fits, wanted) in SETTINGS.items():
        if not fits(settings[name]) if name in settings else name == "url":
            raise Wrong(f"`{name}` in [preprocessor.docent] must be {wanted}")
    return settings


def widget(context, settings):
    attributes = {
        "title": settings.get("title"),
        "placeholder": settings.get("placeholder"),
        "accent": settings.get("accent"),
        "search": None if settings.get("search", True) else "off",
        "locale": context["config"].get("book", {}).get("language"),
    }
    written = "".join(f' data-{name}="{escape(value)}"' for name, value in attributes.items() if value)
    return f'<script src="{escape(settings["url"].rstrip("/"))}/widget.js"{written} async></script>'


def add_to(items, tag):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            # A draft has no page.
            if chapter.get("path"):
                chapter["content"] += tag
            add_to(chapter["sub_items"], tag)


def ingest(context, settings):
    """Reads the sources: a preprocessor runs before there are pages."""
    given = settings.get("ingest", False)
    html = context["config"].get("output", {}).get("html", {})
    # `mdbook serve` sets this address.
    if not given or "live-reload-endpoint" in html:
        return
    if given is True:
        published = html.get("site-url", "")
        if not published.startswith(("http://", "https://")):
            raise Wrong(
                "`ingest = true` needs the address of the book, so that citations can link to it: set `site-url` in "
                '[output.html], such as "https://book.example.org/"'
            )
        given = [context["root"], "--layout", "mdbook", "--base-url", published]
    binary = settings.get("binary", "docent")
    try:
        status = subprocess.run([binary, "ingest", *given], cwd=context["root"], stdout=sys.stderr).returncode
    except FileNotFoundError:
        raise Wrong(f"cannot find the program `{binary}`; install Docent, or set `binary` to its path") from None
    if status != 0:
        raise Wrong(f"`{binary} ingest` failed with exit status {status}")


if __name__ == "__main__":
    main()
