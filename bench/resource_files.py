"""Skills and documents on disk: as many as asked for, the same ones for the same seed."""

from __future__ import annotations

from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SEED = 20_262
_FOLDERS = 100
_SYLLABLES = [
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ka",
    "le",
    "mi",
    "no",
    "pu",
    "ra",
    "se",
    "ti",
    "vo",
    "zu",
]
_WORDS = [
    first + second + third + fourth
    for first in _SYLLABLES
    for second in _SYLLABLES
    for third in _SYLLABLES
    for fourth in ("", "n", "r")
]
_FREQUENCIES = list(accumulate(1 / (rank + 10) for rank in range(len(_WORDS))))
"""Words are as unevenly frequent as those of a language: few are everywhere, most are rare."""


def write_skills(place: Path, count: int) -> Path:
    """Write skills: each a `SKILL.md` of one to three kilobytes and two supporting files.

    Args:
        place: A directory that does not exist yet.
        count: How many.

    Returns:
        `place`.
    """
    random = Random(SEED)
    for number in range(count):
        write_skill(place, skill_name(number), random)
    return place


def write_skill(root: Path, name: str, random: Random) -> None:
    """Write one skill, its folder last named, so that none sees half of it."""
    half = root / f".{name}"
    (half / "references").mkdir(parents=True)
    head = f"---\nname: {name}\ndescription: {_sentence(random)} {_sentence(random)}\n---\n\n"
    (half / "SKILL.md").write_text(head + _body(random, 6), encoding="utf-8")
    (half / "references" / "REFERENCE.md").write_text(_body(random, 3), encoding="utf-8")
    (half / "references" / "data.json").write_text('{"rows": [1, 2, 3]}\n', encoding="utf-8")
    half.rename(root / name)


def skill_name(number: int) -> str:
    """Return the name of a skill."""
    return f"skill-{number:05}"


def write_documents(place: Path, count: int) -> Path:
    """Write Markdown documents in a hundred folders, a tenth of them with frontmatter.

    Args:
        place: A directory that does not exist yet.
        count: How many.

    Returns:
        `place`.
    """
    random = Random(SEED)
    for number in range(count):
        path = place / document_path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"---\ntitle: Document {number}\n---\n" if number % 10 == 0 else ""
        path.write_text(head + _body(random, 3), encoding="utf-8")
    return place


def document_path(number: int) -> str:
    """Return the path of a document below the root of all."""
    return f"part-{number % _FOLDERS:02}/document-{number:05}.md"


def queries(count: int) -> list[str]:
    """Return searches of one to three words, as frequent as they are in documents."""
    random = Random(SEED + 1)
    return [" ".join(_words(random, random.randint(1, 3))) for _ in range(count)]


def _sentence(random: Random) -> str:
    return f"{' '.join(_words(random, random.randint(6, 14))).capitalize()}."


def _words(random: Random, count: int) -> list[str]:
    return random.choices(_WORDS, cum_weights=_FREQUENCIES, k=count)


def _body(random: Random, sections: int) -> str:
    parts: list[str] = []
    for _ in range(sections):
        title = " ".join(_words(random, 2)).capitalize()
        lines = " ".join(_sentence(random) for _ in range(random.randint(2, 5)))
        parts.append(f"# {title}\n\n{lines}\n")
    return "\n".join(parts)
