"""Read the pages of a book: a folder of Markdown, or a corpus in the BEIR layout.

All Python stacks read pages in this way. The id of a page is what relevance judgements name: its path in the
folder, or its id in the corpus. Front matter gives the title and is not part of the text.
"""

import gzip
import json
import re
from pathlib import Path
from typing import NamedTuple

SUFFIXES = {".md", ".mdx"}
FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
TITLE = re.compile(r"^title:\s*(.+)$", re.MULTILINE)
FIRST_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


class Page(NamedTuple):
    id: str
    title: str
    text: str


def read_pages(book):
    book = Path(book)
    return read_corpus(book) if book.is_file() else read_folder(book)


def read_folder(folder):
    files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    return [page(path.relative_to(folder).as_posix(), "", path.read_text(encoding="utf-8")) for path in files]


def read_corpus(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = map(json.loads, lines)
        return [page(record["_id"], record.get("title", ""), record["text"]) for record in records]


def page(id, title, text):
    front_matter = FRONT_MATTER.match(text)
    body = text[front_matter.end():] if front_matter else text
    candidates = (front_matter and TITLE.search(front_matter[1]), FIRST_HEADING.search(body))
    found = next((match[1].strip().strip("\"'") for match in candidates if match), id)
    return Page(id, title or found, body)
