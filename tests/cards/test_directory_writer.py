"""Names of files that are written to a directory."""

from __future__ import annotations

import pytest

from fast_agent.cards.directory_writer import name_problems


@pytest.mark.parametrize("name", ["a.md", "a b.md", "größe.md", "a%2Fb.md", "a..b"])
def test_names_that_stay_in_the_directory(name: str) -> None:
    assert name_problems(name) == []


@pytest.mark.parametrize("name", ["", ".", "..", ".a.md", "a/b.md", "a\\b.md", "a\n.md", "a\0"])
def test_names_that_could_leave_it_or_hide(name: str) -> None:
    (problem,) = name_problems(name)
    assert problem.hint
