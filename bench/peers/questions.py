"""Distinct questions about a book, made from its headings, so that no answer can come from a cache.

The order depends only on the book and the round: every system gets the same questions in a round.
"""

import itertools
import random
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "stacks"))

from pages import read_pages

HEADING = re.compile(r"^#{1,4} +(.+?)[ #]*$", re.MULTILINE)
CODE_BLOCK = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
FORMS = [
    "What is {}?",
    "What does {} mean?",
    "How does {} work?",
    "Why does {} matter for a robot?",
    "When would I use {}?",
    "Can you explain {}?",
    "What do I need to know about {}?",
    "What is an example of {}?",
    "What are the steps of {}?",
    "Which problems does {} solve?",
    "What can go wrong with {}?",
    "How do I get started with {}?",
    "How is {} used in practice?",
    "Which tools are there for {}?",
    "What is the purpose of {}?",
    "What are the limits of {}?",
    "Who needs {}?",
    "What belongs to {}?",
    "What does the book say about {}?",
    "What is the main idea of {}?",
    "What are the parts of {}?",
    "How would a beginner learn {}?",
    "What should I avoid with {}?",
    "What are the benefits of {}?",
    "How can I test {}?",
    "Is {} needed for a humanoid?",
    "How do I improve {}?",
    "What comes before {}?",
    "What hardware is needed for {}?",
    "What software is needed for {}?",
    "Where can I find {}?",
    "How long does {} take?",
]


def all_questions(book):
    headings = set()
    for page in read_pages(book):
        for heading in HEADING.findall(CODE_BLOCK.sub("", page.text)):
            words = re.sub(r"[*`_\[\]{}]|\(.*?\)", "", heading)
            # Labels of the section or the chapter come before a colon: `Hook: The Reality Gap`.
            words = re.sub(r"^[\W\d]+", "", words.rsplit(": ", 1)[-1]).strip(" :?!.")
            if 4 <= len(words) <= 80:
                headings.add(words)
    return [form.format(heading) for heading, form in itertools.product(sorted(headings), FORMS)]


def questions_of_round(questions, number):
    """An iterator over all questions in the order of this round. It ends when there are no more."""
    shuffled = random.Random(number).sample(questions, len(questions))
    yield from shuffled
    raise SystemExit("all questions have been asked; use a shorter --seconds or a longer book")
