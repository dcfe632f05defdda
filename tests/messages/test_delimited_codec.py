from __future__ import annotations

import pytest

from fast_agent.errors import HistoryError
from fast_agent.messages.delimited_codec import (
    MESSAGE_PART,
    delimited_places,
    near_delimiters,
    read_delimited_history,
    write_delimited_history,
)
from fast_agent.messages.history import HistoryDocument
from fast_agent.messages.message import (
    Content,
    EmbeddedResource,
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    ToolResult,
)
from fast_agent.text.source import Source


def read(text: str) -> HistoryDocument:
    return read_delimited_history(Source.of("h.md", text), attached)


def attached(name: str) -> Content:
    if name == "missing.txt":
        raise HistoryError("`missing.txt` does not exist", hint="look again")
    return EmbeddedResource(f"resource://history/{name}", "text/plain", "attached")


def user(*content: Content) -> Message:
    return Message("user", content)


@pytest.mark.parametrize("text", ["", "\n\n", "  \n\t\n", "\ufeff"])
def test_nothing_is_no_message(text: str) -> None:
    assert read(text) == HistoryDocument()


@pytest.mark.spec("CARD-54")
def test_text_without_delimiters_is_one_user_message() -> None:
    text = "\n\nhello ---USER\n\n  --- \nthere\n\n"
    assert read(text) == HistoryDocument(messages=(Message.user("hello ---USER\n\n  --- \nthere"),))


@pytest.mark.spec("CARD-52", "HIST-1")
def test_sections_become_messages() -> None:
    text = (
        "---SYSTEM\nBe brief.\n\n---USER\n\nhello\n  there\n\n---ASSISTANT\nhi\n---USER\n---USER\nx"
    )
    assert read(text) == HistoryDocument(
        "Be brief.",
        (
            Message.user("hello\n  there"),
            Message.assistant("hi"),
            Message("user"),
            Message.user("x"),
        ),
    )


@pytest.mark.spec("CARD-34")
def test_crlf_and_byte_order_mark() -> None:
    text = "\ufeff---USER\r\na\r\nb\r\n---ASSISTANT\r\nc\r\n"
    assert read(text) == HistoryDocument(messages=(Message.user("a\nb"), Message.assistant("c")))


@pytest.mark.parametrize("line", ["---USER ", " ---USER", "---user", "---USERS", "----USER"])
def test_only_exact_lines_are_delimiters(line: str) -> None:
    assert read(f"---USER\na\n{line}\nb").messages == (Message.user(f"a\n{line}\nb"),)


def test_lines_that_almost_are_delimiters_are_reported() -> None:
    text = "---USER\n--- user\n---USERS\n---\n---ASSISTANT \n"
    found = list(near_delimiters(Source.of("h.md", text)))
    assert [(text[item.start : item.end], item.replacement) for item in found] == [
        ("--- user", "---USER"),
        ("---ASSISTANT ", "---ASSISTANT"),
    ]


@pytest.mark.spec("CARD-53")
def test_resources() -> None:
    text = (
        "---USER\nlook\n---RESOURCE\n"
        '{"type": "resource", "resource": {"uri": "a:b", "mimeType": "x/y", "text": "t"}}\n'
        '---RESOURCE\n{\n  "uri": "c:d",\n  "blob": "aGk="\n}\n'
        "---RESOURCE\n\n notes/a.txt \n\n"
        '---RESOURCE\n{"type": "image", "data": "aGk=", "mimeType": "image/png"}\n'
    )
    assert read(text).messages == (
        user(
            TextContent("look"),
            EmbeddedResource("a:b", "x/y", "t"),
            EmbeddedResource("c:d", blob="aGk="),
            EmbeddedResource("resource://history/notes/a.txt", "text/plain", "attached"),
            ImageContent("aGk=", "image/png"),
        ),
    )


def test_a_first_resource_opens_a_user_message() -> None:
    messages = read("---RESOURCE\na.txt\n---ASSISTANT\nok").messages
    assert [message.role for message in messages] == ["user", "assistant"]


@pytest.mark.spec("HIST-4")
@pytest.mark.parametrize(
    ("text", "code", "message", "line", "column"),
    [
        ("intro\n---USER\nx", "FA406", "there is text before the first section", 1, 1),
        ("---USER\nx\n---SYSTEM\ny", "FA406", "`---SYSTEM` must come first", 3, 1),
        ("---SYSTEM\nx\n---SYSTEM\ny", "FA406", "`---SYSTEM` must come first", 3, 1),
        ("---SYSTEM\n---RESOURCE\na", "FA406", "a resource cannot follow `---SYSTEM`", 2, 1),
        ("---USER\n---RESOURCE\n\n", "FA405", "there is nothing under `---RESOURCE`", 2, 1),
        (
            "---USER\n---RESOURCE\na.txt\nand more",
            "FA405",
            "what follows `---RESOURCE` is neither JSON nor one path",
            3,
            1,
        ),
        ("---RESOURCE\n missing.txt", "FA405", "`missing.txt` does not exist", 2, 2),
        (
            '---RESOURCE\n{"uri": "a",\n  "text": 1}',
            "FA404",
            "`text` must be a string, not a number",
            3,
            11,
        ),
        (
            '---RESOURCE\n{"uri": "a",\n  "uri": "b", "text": ""}',
            "FA403",
            "the key `uri` is defined twice",
            3,
            3,
        ),
        ('---RESOURCE\n{"uri": "a"', "FA402", "not JSON: it ends before it is complete", 2, 12),
        (
            '---RESOURCE\n{"uri": "a", "text": ""} trailing',
            "FA402",
            "not JSON: extra data",
            2,
            26,
        ),
    ],
)
def test_wrong_sections(text: str, code: str, message: str, line: int, column: int) -> None:
    with pytest.raises(HistoryError) as caught:
        read(text)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == (code, message)
    assert found.span is not None
    assert (found.span.start.line, found.span.start.column) == (line, column)
    assert found.source_line == text.split("\n")[line - 1]


def test_all_problems_at_once() -> None:
    with pytest.raises(HistoryError) as caught:
        read("x\n---RESOURCE\n---USER\n---SYSTEM\n---RESOURCE\nmissing.txt")
    assert [item.code for item in caught.value.diagnostics] == ["FA406", "FA405", "FA406", "FA405"]
    assert caught.value.message == "history `h.md` has 4 problems"


def test_calls_and_results_go_into_parts() -> None:
    transcript = HistoryDocument(
        messages=(
            Message.user("time?"),
            Message("assistant", (TextContent("let me look"),), (ToolCall("1", "now", {"z": 1}),)),
            Message("user", tool_results=(ToolResult("1", (TextContent("noon"),)),)),
            Message.assistant("noon"),
        )
    )
    text = write_delimited_history(transcript)
    assert text.count(MESSAGE_PART) == 2
    assert text.startswith("---USER\ntime?\n---ASSISTANT\nlet me look\n---RESOURCE\n{\n")
    assert text.endswith("---ASSISTANT\nnoon\n")
    assert read(text) == transcript


def part(text: str) -> str:
    from fast_agent.messages.json_text import write_json

    resource = {"uri": "x:y", "mimeType": MESSAGE_PART, "text": text}
    return f"---RESOURCE\n{write_json(resource)}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the text of this part is not JSON: it ends before it is complete"),
        ("[]", "the text of this part must be a JSON object"),
        ('{"phase": 3}', "in this part, `phase` must be a string, not a number"),
        (
            '{"phase": "a", "phase": "b"}',
            "the text of this part is the key `phase` is defined twice",
        ),
    ],
)
def test_wrong_parts(text: str, message: str) -> None:
    with pytest.raises(HistoryError) as caught:
        read(f"---USER\nx\n{part(text)}---USER\ny\n")
    (found,) = caught.value.diagnostics
    assert found.message == message
    assert found.span is not None
    assert found.span.start.line == 3


def test_nothing_follows_a_part() -> None:
    with pytest.raises(HistoryError, match="nothing can follow the part that ends a message"):
        read(f"---USER\nx\n{part('{}')}---RESOURCE\na.txt\n")


def test_places_of_messages() -> None:
    text = "---RESOURCE\na.txt\n---ASSISTANT\nx\n---RESOURCE\nb.txt\n---USER\ny\n"
    places = delimited_places(Source.of("h.md", text))
    assert [text[start:end] for start, end in places] == ["---RESOURCE", "---ASSISTANT", "---USER"]
    system = "---SYSTEM\ns\n---USER\ny\n"
    assert delimited_places(Source.of("h.md", system)) == [(12, 19)]
