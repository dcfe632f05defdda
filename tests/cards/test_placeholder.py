from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.cards.placeholder import PLAIN, WITH_ARGUMENT, Placeholder, parse_template


def shown(text: str) -> list[str]:
    """The parts, placeholders as `<name|argument>`."""
    return [
        part if isinstance(part, str) else f"<{part.name}|{part.argument}>"
        for part in parse_template(text).segments
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("plain { braces } {{ } }}", ["plain { braces } {{ } }}"]),
        ("{{currentDate}}", ["<currentDate|>"]),
        ("a{{env}}b{{env}}", ["a", "<env|>", "b", "<env|>"]),
        ("{{file:a b.md}}", ["<file|a b.md>"]),
        ("{{file: a.md }}", ["<file|a.md>"]),
        ("{{url:https://x.y/z?a=1:2}}", ["<url|https://x.y/z?a=1:2>"]),
        ("{{{currentDate}}}", ["{", "<currentDate|>", "}"]),
        (r"\{{currentDate}}", ["{{currentDate}}"]),
        (r"\\{{currentDate}}", [r"\{{currentDate}}"]),
        (r"a\{{b{{env}}", ["a{{b", "<env|>"]),
        ("{{ currentDate }}", ["{{ currentDate }}"]),
        ("{{currentdate}}", ["{{currentdate}}"]),
        ("{{currentDate:x}}", ["{{currentDate:x}}"]),
        ("{{file}} {{file:}} {{file: }}", ["{{file}} {{file:}} {{file: }}"]),
        ("{{current\nDate}}", ["{{current\nDate}}"]),
        ("{{}}", ["{{}}"]),
        ("{{nothing}}{{agents}}", ["{{nothing}}", "<agents|>"]),
    ],
)
def test_parts(text: str, parts: list[str]) -> None:
    assert shown(text) == parts


@pytest.mark.parametrize("name", PLAIN)
def test_every_plain_name(name: str) -> None:
    assert shown(f"{{{{{name}}}}}") == [f"<{name}|>"]


@pytest.mark.parametrize("name", WITH_ARGUMENT)
def test_every_name_with_an_argument(name: str) -> None:
    assert shown(f"{{{{{name}:x}}}}") == [f"<{name}|x>"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{{user}} {{ currentDate }} {{a.b}} {{file}}", ["user", " currentDate ", "a.b", "file"]),
        ('{{ x + y }} {{}} {{1}} {{"a"}} \\{{user}}', []),
    ],
)
def test_what_looks_like_a_placeholder(text: str, names: list[str]) -> None:
    assert [item.name for item in parse_template(text).unknown] == names


def test_places_and_uses() -> None:
    template = parse_template("ab {{env}} {{user}} {{file:x}}")
    assert template.placeholders == (
        Placeholder("env", "", 3, 10),
        Placeholder("file", "x", 20, 30),
    )
    assert template.uses("file")
    assert not template.uses("agents")
    assert [str(item) for item in template.placeholders] == ["{{env}}", "{{file:x}}"]


pieces = st.sampled_from(["{", "}", "{{", "}}", "\\", "env", "file:a", "x", "\n", " ", ":"])


@given(st.lists(pieces, max_size=25).map("".join))
def test_nothing_is_lost_or_invented(text: str) -> None:
    template = parse_template(text)
    rebuilt = "".join(
        [
            part if isinstance(part, str) else text[part.start : part.end]
            for part in template.segments
        ]
    )
    assert rebuilt == text.replace(r"\{{", "{{")
    for item in (*template.placeholders, *template.unknown):
        raw = text[item.start : item.end]
        assert raw.startswith("{{" + item.name)
        assert raw.endswith("}}")
