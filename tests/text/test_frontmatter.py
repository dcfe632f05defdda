from __future__ import annotations

import pytest

from fast_agent.text.frontmatter import Frontmatter, FrontmatterError, split_frontmatter
from fast_agent.text.source import Source
from fast_agent.text.span import Span


def split(text: str) -> Frontmatter | None:
    return split_frontmatter(Source("a.md", text))


@pytest.mark.spec("CARD-13", "FILE-4")
@pytest.mark.parametrize(
    ("text", "yaml", "body", "body_line"),
    [
        ("---\na: 1\n---\nHi\n", "a: 1\n", "Hi\n", 4),
        ("---\n---\nHi", "", "Hi", 3),
        ("---\na: 1\n---", "a: 1\n", "", 4),
        ("---\na: 1\n---\n\nx\n---\ny\n", "a: 1\n", "\nx\n---\ny\n", 4),
        ("---\na: 1\n----\n--- x\n ---\n---\n", "a: 1\n----\n--- x\n ---\n", "", 7),
    ],
)
def test_the_first_exact_fence_closes(text: str, yaml: str, body: str, body_line: int) -> None:
    assert split(text) == Frontmatter(yaml, 2, body, body_line)


@pytest.mark.parametrize(
    "text", ["", "Hi", "\n---\na: 1\n---\n", "----\n", "# ---\n", " ---\n---\n"]
)
def test_anything_else_has_no_frontmatter(text: str) -> None:
    assert split(text) is None


@pytest.mark.spec("FILE-4", "FILE-6")
@pytest.mark.parametrize(
    ("text", "reason", "span"),
    [
        ("---\na: 1\nHi\n", "unclosed", Span.at(1, 1, 3)),
        ("---", "unclosed", Span.at(1, 1, 3)),
        ("---\n", "unclosed", Span.at(1, 1, 3)),
        ("+++\na = 1\n+++\n", "toml", Span.at(1, 1, 3)),
        ("---  \na: 1\n---\n", "fence", Span.at(1, 1, 5)),
        ("---\na: 1\n--- \nHi\n", "fence", Span.at(3, 1, 4)),
    ],
)
def test_a_wrong_fence_is_placed(text: str, reason: str, span: Span) -> None:
    with pytest.raises(FrontmatterError) as caught:
        split(text)
    assert caught.value.reason == reason
    assert caught.value.span == span
    assert caught.value.hint
    assert caught.value.replacement == ("---" if reason == "fence" else None)
