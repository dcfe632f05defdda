from __future__ import annotations

import pytest

from fast_agent.text.frontmatter import unfenced_lines


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("a\nb", ["a", "b"]),
        ("a\n```\nb\n```\nc", ["a", "c"]),
        ("~~~ py\nb\n```\n~~~\nc", ["c"]),
        ("````\n```\nb\n````\nc", ["c"]),
        ("```\nb\n```x\nc\n```\nd", ["d"]),
        ("``` a`b\nc", ["``` a`b", "c"]),
        ("    ```\nb", ["    ```", "b"]),
        ("```\nnever closed", []),
    ],
)
def test_fenced_lines_are_left_out(text: str, outside: list[str]) -> None:
    assert [line for _, line in unfenced_lines(text)] == outside


def test_lines_are_numbered_from_one() -> None:
    assert list(unfenced_lines("a\n```\nb\n```\nc")) == [(1, "a"), (5, "c")]
