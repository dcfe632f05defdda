"""Public names stand in one table, and documentation and examples import from nowhere else."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import fast_agent

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


@pytest.mark.parametrize("name", fast_agent.__all__)
def test_every_name_is_found_where_the_table_says(name: str) -> None:
    assert getattr(fast_agent, name) is not None


def test_a_name_that_is_not_public_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = fast_agent.nothing


def test_importing_the_package_imports_no_room() -> None:
    script = "import sys, fast_agent; print(sorted(m for m in sys.modules if 'fast_agent.' in m))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['fast_agent.version']"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_import_public_names_alone(page: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert [
        line for block in blocks if "fast_agent" in block for line in inner_imports(block)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_classes_that_pages_name_are_public(page: Path) -> None:
    if "internals" not in page.parts and page.name != "contributing.md":
        named = set(re.findall(r"\b[A-Z][a-z]+[A-Z]\w+", page.read_text("utf-8")))
        assert named & classes() <= set(fast_agent.__all__)


@cache
def classes() -> frozenset[str]:
    """The names of the classes of the package."""
    texts = (source.read_text("utf-8") for source in (ROOT / "src").rglob("*.py"))
    return frozenset(
        name for text in texts for name in re.findall(r"^class (\w+)", text, re.MULTILINE)
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_import_public_names_alone(example: Path) -> None:
    assert inner_imports(example.read_text("utf-8")) == []


def inner_imports(code: str) -> list[str]:
    """Imports of names of the package that the table does not have."""
    return [
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fast_agent"
        for alias in node.names
        if node.module != "fast_agent" or alias.name not in fast_agent.__all__
    ]
