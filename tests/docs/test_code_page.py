"""The pages about the code name every package, and no file that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "fast_agent"


def test_every_package_is_in_the_table() -> None:
    rows = (ROOT / "docs" / "contributing.md").read_text("utf-8")
    packages = {f"`{path.parent.name}/`" for path in SOURCE.glob("*/__init__.py")}
    assert {name for name in packages if f"| {name} |" not in rows} == set()


def test_every_file_on_the_page_is_there() -> None:
    page = (ROOT / "docs" / "internals" / "code.md").read_text("utf-8")
    named = re.findall(r"`(src/fast_agent[\w/.]*)`", page)
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []
    pictures = re.findall(r"\]\(([\w-]+\.svg)\)", page)
    assert len(pictures) == 2
    assert all((ROOT / "docs" / "internals" / name).exists() for name in pictures)


def test_modules_on_the_page_of_resources_are_there() -> None:
    page = (ROOT / "docs" / "internals" / "resources.md").read_text("utf-8")
    values = page.partition("## Values")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `([\w.]+)` \|", values, re.MULTILINE)
    named += re.findall(r"`(serve/\w+)`", page)
    assert len(named) > 12
    paths = [f"{name.replace('.', '/')}.py" for name in named]
    rooms = (SOURCE, SOURCE / "resources")
    assert [path for path in paths if not any((room / path).exists() for room in rooms)] == []
