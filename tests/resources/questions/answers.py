"""How many questions about the packaged documents the first hit answers.

`python -m tests.resources.questions.answers tuned` prints those it does not answer.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.resources.catalog import Catalog
from fast_agent.resources.internal.provider import InternalProvider
from fast_agent.resources.search import SearchIndex

if TYPE_CHECKING:
    from fast_agent.resources.search import Hit


def questions(name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Read the questions of a file, each with the places that answer it."""
    text = Path(__file__).with_name(f"{name}.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pairs = [line.split(" => ") for line in lines]
    return [(asked, tuple(one.strip() for one in places.split("|"))) for asked, places in pairs]


def missed(name: str) -> list[tuple[str, Hit | None]]:
    """Return the questions whose first hit is in none of the places, with that hit."""
    index = SearchIndex(Catalog((InternalProvider(),)))
    wrong: list[tuple[str, Hit | None]] = []
    for asked, places in questions(name):
        hit = next(iter(index.search(asked, 3)), None)
        if not _is_in(hit, places):
            wrong.append((asked, hit))
    return wrong


def _is_in(hit: Hit | None, places: tuple[str, ...]) -> bool:
    if hit is None:
        return False
    for place in places:
        document, _, heading = place.partition("#")
        last = hit.heading.replace("`", "").split(" > ")[-1]
        if hit.uri.endswith(document) and last.startswith(heading.split(" > ")[-1]):
            return True
    return False


if __name__ == "__main__":
    wrong = missed(sys.argv[1])
    print(f"{len(questions(sys.argv[1])) - len(wrong)} of {len(questions(sys.argv[1]))}")
    for asked, hit in wrong if sys.argv[1] == "tuned" else ():
        print(f"- {asked}: {hit and (hit.uri[22:], hit.heading, round(hit.score, 1))}")
