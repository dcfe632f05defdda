"""Skills and documents on disk: as many as asked for, the same ones for the same seed."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SEED = 20_262
_FOLDERS = 100
_WORDS = """
answer author bearer branch build cache change check client cursor digest draft error field file
folder guide header index issue label limit line listing login manifest merge message method note
number output page part path pattern place prompt proof query reader record release report request
review rule schema scope section server session sign skill source stamp state step stream style
summary table task template test text token tool type unit upload user value version watch word
""".split()  # noqa: SIM905 - a list of ninety lines says no more


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
    """Give the name of a skill."""
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
    """Give the path of a document below the root of all."""
    return f"part-{number % _FOLDERS:02}/document-{number:05}.md"


def queries(count: int) -> list[str]:
    """Give searches of one to three words that documents hold."""
    random = Random(SEED + 1)
    return [" ".join(random.sample(_WORDS, random.randint(1, 3))) for _ in range(count)]


def _sentence(random: Random) -> str:
    return f"{' '.join(random.choices(_WORDS, k=random.randint(6, 14))).capitalize()}."


def _body(random: Random, sections: int) -> str:
    parts: list[str] = []
    for _ in range(sections):
        title = " ".join(random.sample(_WORDS, 2)).capitalize()
        lines = " ".join(_sentence(random) for _ in range(random.randint(2, 5)))
        parts.append(f"# {title}\n\n{lines}\n")
    return "\n".join(parts)
