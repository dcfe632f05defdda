"""The packaged documents: each text in docs/guides/ with its tables, and the manifest of them all.

A text begins with frontmatter (title, description, why, tags). A line `<!-- name: arguments -->` in
it stands for a part made from the code.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fast_agent.resources.resource import estimate
from fast_agent.text.frontmatter import split_frontmatter
from fast_agent.text.source import Source
from fast_agent.text.yaml_document import parse_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TEXTS = Path(__file__).parent / "guides"
PACKAGE = Path(__file__).parents[1] / "src" / "fast_agent" / "resources" / "internal" / "documents"
ROOT = "internal://fast-agent"
INDEX = "skills/index.md"
MIME_TYPE = "text/markdown"
_MARK = re.compile(r"^<!-- ([a-z-]+)(?:: (.*))? -->$", re.MULTILINE)


def documents(parts: Mapping[str, Callable[[str], str]]) -> dict[Path, str]:
    """Make every packaged document and the manifest.

    Args:
        parts: What makes the generated parts, by name; each takes its arguments.

    Returns:
        The text of every file.
    """
    files: dict[Path, str] = {}
    entries: list[dict[str, Any]] = []
    for file in sorted(TEXTS.glob("*.md")):
        facts, body = _read(file)
        text = _MARK.sub(lambda match: parts[match[1]](match[2] or "").strip(), body).strip() + "\n"
        files[PACKAGE / file.name] = text
        entries.append(_entry(f"{ROOT}/{file.stem}", file.name, facts, text))
    skills = [_skill(file) for file in sorted((PACKAGE / "skills").glob("*/SKILL.md"))]
    index = _skill_index(skills)
    files[PACKAGE / INDEX] = index
    entries.append(_entry(f"{ROOT}/skills/index", INDEX, _INDEX_FACTS, index))
    entries += skills
    entries.sort(key=lambda entry: entry["uri"])
    manifest = {"version": 1, "resources": entries}
    files[PACKAGE / "manifest.json"] = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    return files


_INDEX_FACTS = {
    "title": "Skills",
    "description": "The skills that come with the program.",
    "why": "Use before a longer task, to see whether there is a way of working for it.",
    "tags": ["skills"],
}


def _entry(uri: str, source: str, facts: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {
        "uri": uri,
        "title": facts["title"],
        "description": facts["description"],
        "why": facts["why"],
        "mime_type": MIME_TYPE,
        "source": source,
        "tags": facts["tags"],
        "size": len(text.encode()),
        "tokens": estimate(len(text)),
    }


def _skill(file: Path) -> dict[str, Any]:
    facts, _ = _read(file)
    name = file.parent.name
    told, _, when = facts["description"].partition(" Use ")
    if facts["name"] != name or not when:
        raise ValueError(f"{file}: its name is not its folder's, or it does not say when to use it")
    shown = {"title": name, "description": told, "why": f"Use {when}", "tags": ["skill"]}
    source = f"skills/{name}/SKILL.md"
    return _entry(f"{ROOT}/{source}", source, shown, file.read_text(encoding="utf-8"))


def _skill_index(skills: list[dict[str, Any]]) -> str:
    lines = ["# Skills", "", "Read one when its task comes up, then follow it.", ""]
    lines += ["| skill | what it does | when | tokens |", "|---|---|---|---|"]
    for skill in skills:
        cells = (f"`{skill['uri']}`", skill["description"], skill["why"], str(skill["tokens"]))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _read(file: Path) -> tuple[dict[str, Any], str]:
    source = Source.of(str(file), file.read_text(encoding="utf-8"))
    found = split_frontmatter(source)
    if found is None:
        raise ValueError(f"{file} has no frontmatter")
    return cast("dict[str, Any]", parse_yaml(found.text).value), found.body


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """Write a Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)
