from __future__ import annotations

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.resources.guide.pattern import Pattern, is_pattern


@pytest.mark.parametrize(
    ("pattern", "fitting", "other"),
    [
        ("*.md", ["a.md", ".md", "a.b.md"], ["a.txt", "d/a.md", "a.MD"]),
        ("**", ["a", "a/b", "a/b/c.md"], []),
        ("**/*.md", ["a.md", "d/a.md", "d/e/a.md"], ["a.txt", "d/a.md/x"]),
        ("api/**", ["api/a", "api/b/c"], ["api", "apis/a", "x/api/a"]),
        ("api/**/ref.md", ["api/ref.md", "api/x/ref.md", "api/x/y/ref.md"], ["api/xref.md"]),
        ("**/a/**/b", ["a/b", "x/a/b", "a/x/b", "a/b/a/b"], ["a", "b", "a/b/c"]),
        ("doc-?.md", ["doc-1.md", "doc-é.md"], ["doc-.md", "doc-12.md"]),
        ("doc-[12].md", ["doc-1.md", "doc-2.md"], ["doc-3.md", "doc-[12].md"]),
        ("doc-[a-c].md", ["doc-b.md"], ["doc-d.md", "doc--.md"]),
        ("doc-[!a-c].md", ["doc-d.md", "doc-!.md"], ["doc-b.md"]),
        ("[]x].md", ["].md", "x.md"], ["y.md"]),
        ("[!]x].md", ["y.md"], ["].md"]),
        ("[c-a].md", [], ["a.md", "b.md", "c.md", "-.md"]),
        ("[a-].md", ["a.md", "-.md"], ["b.md"]),
        ("open[.md", ["open[.md"], ["open.md"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("*", ["a", "a.b"], ["a/b", ""]),
        ("a*b*c", ["abc", "a1b2c", "abbc", "abcbc"], ["acb", "ab"]),
        ("*a*ab", ["aab", "aaab", "xaxab"], ["ab", "aba"]),
        ("+(.md", ["+(.md"], ["x.md"]),
    ],
)
def test_patterns(pattern: str, fitting: list[str], other: list[str]) -> None:
    parsed = Pattern.parse(pattern)
    assert [name for name in fitting if not parsed.matches(name)] == []
    assert [name for name in other if name and parsed.matches(name)] == []
    assert all(name.startswith(parsed.prefix) for name in fitting)


def test_a_stem_fits_one_extension_more() -> None:
    stem = Pattern.parse("deep/read.me", stem=True)
    assert stem.matches("deep/read.me")
    assert stem.matches("deep/read.me.md")
    assert not stem.matches("deep/read.me.md.bak")
    assert not stem.matches("deep/readxme")
    assert not Pattern.parse("deep/read").matches("deep/read.md")


def test_what_is_a_pattern() -> None:
    assert [text for text in ("a*", "a?", "a[", "**") if not is_pattern(text)] == []
    assert not is_pattern("a.b-c_d]{}")


def reference(pattern: str) -> re.Pattern[str]:
    """The plain meaning of a pattern without brackets, in any number of steps."""
    text = ""
    for name in pattern.split("/"):
        if name == "**":
            text += "(?:[^/]+/)*"
        else:
            text += re.sub(r"\\\*|\*", "[^/]*", re.escape(name)).replace(r"\?", "[^/]") + "/"
    return re.compile(text)


NAME = st.text(alphabet="ab.", min_size=1, max_size=4)


@given(
    st.lists(
        st.text(alphabet="ab.*?", min_size=1, max_size=5) | st.just("**"), min_size=1, max_size=4
    ),
    st.lists(NAME, min_size=1, max_size=4),
)
def test_patterns_mean_what_their_plain_expression_does(
    pattern: list[str], names: list[str]
) -> None:
    text = "/".join([*pattern, "b"])
    plain = reference(re.sub(r"\*\*+(?=[^/*])|(?<=[^/*])\*\*+", "*", text))
    name = "/".join(names)
    expected = plain.fullmatch(f"{name}/") is not None
    assert Pattern.parse(text).matches(name) == expected


@given(st.text(alphabet="ab/*?[]!-", max_size=12), st.text(alphabet="ab/-]", max_size=8))
def test_every_text_is_a_pattern(pattern: str, name: str) -> None:
    assert Pattern.parse(pattern).matches(name) in {True, False}


@pytest.mark.spec("GUIDE-44")
@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*a" * 400 + "b", "a" * 250),
        ("*[ab]?" * 300 + "!", "ab" * 120),
        ("/".join(["**", "a"] * 300), "/".join("a" * 300) + "/b"),
        ("**/*a" * 100 + "!", "/".join(["aaaa"] * 300)),
        ("*" * 2000, "a" * 250),
    ],
)
def test_no_pattern_takes_long(pattern: str, name: str) -> None:
    parsed = Pattern.parse(pattern)
    start = process_time()
    for _ in range(10):
        parsed.matches(name)
    assert process_time() - start < 20
