from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, cast
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.resources.guide.small_guide import (
    INSTALL,
    META,
    listed,
    make_root,
    provider,
    settle,
    write,
)

from fast_agent.resources.catalog import Catalog
from fast_agent.resources.folder import Folder
from fast_agent.resources.guide.index import Document
from fast_agent.resources.guide.listing import read_metadata
from fast_agent.resources.guide.pattern import HELP_ENTRY
from fast_agent.resources.problem import NotFound
from fast_agent.resources.resource import Limits
from fast_agent.resources.search import SearchIndex
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.resources.uri import Uri
from fast_agent.text.safe_file import FileStamp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fast_agent.resources.session import Session
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.text.safe_file import FileBytes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path)


def ask(service: ResourceService, session: Session, method: str, **params: JsonValue) -> Any:
    answer = service.answer(session, method, {"_meta": META, **params}, 1)
    assert answer is not None
    return json.loads(answer.json)


@pytest.mark.spec("GUIDE-1", "GUIDE-34", "GUIDE-35", "GUIDE-36")
def test_documents_are_listed_with_what_they_say_of_themselves(root: Path) -> None:
    settle(root)
    found = listed(provider(root))
    assert found["guide://document/howto/install.md"] == {
        "uri": "guide://document/howto/install.md",
        "name": "howto/install.md",
        "title": "Install it",
        "description": "How to install",
        "mimeType": "text/markdown",
        "size": len(INSTALL),
        "annotations": {
            "audience": ("user", "assistant"),
            "priority": 0.9,
            "lastModified": "2020-09-13T12:26:40Z",
        },
        "_meta": {
            "fast-agent/why": "Comes first",
            "fast-agent/type": "guide",
            "fast-agent/tags": ("setup", "linux"),
        },
    }
    assert found["guide://document/howto/use.md"]["title"] == "Use it"
    assert "title" not in found["guide://document/api/ref.md"]
    assert found["guide://document/howto/plain.txt"]["mimeType"] == "text/plain"
    assert found["guide://document/howto/plain.txt"]["size"] == 5


NAMES = st.lists(
    st.text(st.characters(exclude_characters="/\\", exclude_categories=["C"])), min_size=1
)


@given(category=st.text("ab-_.~1", min_size=1), names=NAMES)
def test_the_text_of_a_uri_is_the_uri(category: str, names: list[str]) -> None:
    name = normalize("NFC", "/".join(one for one in names if one not in {"", ".", ".."}) or "a.md")
    if category not in {".", ".."}:
        document = Document(category, name, name, FileStamp(0, 0, 0, 0, 0))
        assert document.uri_text == document.uri.text


@pytest.mark.spec("GUIDE-4")
def test_help_is_a_resource_and_the_other_forms_are_templates(root: Path) -> None:
    guide = provider(root)
    assert listed(guide)["guide://help"]["mimeType"] == "text/markdown"
    assert {one.mime_type for one in guide.templates()} == {"text/markdown"}
    assert sorted(one.template for one in guide.templates()) == [
        "guide://category/{name}",
        "guide://category/{name}/{+docId}",
        "guide://collection/{id}",
        "guide://document/{context}/{+docId}",
    ]


@pytest.mark.spec("GUIDE-1", "GUIDE-36")
def test_pages(root: Path) -> None:
    limits = Limits(page=3)
    catalog = Catalog([provider(root, limits)], limits)
    service = ResourceService(catalog, ServerInfo("test", "1"))
    session = service.open(lambda _method, _params: None)
    uris: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        given = {} if cursor is None else {"cursor": cursor}
        page = ask(service, session, "resources/list", **given)
        uris += [one["uri"] for one in page["resources"]]
        cursor = page.get("nextCursor")
    assert cursor is None
    assert uris == sorted(uris)
    assert len(uris) == 7
    for uri in uris:
        contents = ask(service, session, "resources/read", uri=uri)["contents"]
        assert [one["uri"] for one in contents] == [uri]


def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note which documents are read from now on."""
    paths: list[str] = []
    read = Folder.read

    def noted(folder: Folder, path: str, limit: int) -> FileBytes:
        paths.append(path)
        return read(folder, path, limit)

    monkeypatch.setattr(Folder, "read", noted)
    return paths


@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
def test_a_page_reads_the_documents_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    names = [f"{number:02}.md" for number in range(20)]
    write(tmp_path, {f"d/{name}": f"# Title of {name}" for name in names})
    settle(tmp_path)
    limits = Limits(page=8)
    catalog = Catalog([provider(tmp_path, limits)], limits)
    service = ResourceService(catalog, ServerInfo("test", "1"), watch=never)
    session = service.open(lambda _method, _params: None, protocol)
    paths = looked_up(monkeypatch)

    def listed_page(cursor: str | None) -> tuple[list[str | None], str | None]:
        params: JsonObject = {} if cursor is None else {"cursor": cursor}
        answer = json.loads(service.call(session, "resources/list", params).json)
        return [one.get("title") for one in answer["resources"]], answer.get("nextCursor")

    first, cursor = listed_page(None)
    assert first == [f"Title of {name}" for name in names[:8]]
    assert listed_page(None) == (first, cursor)
    assert paths == [f"d/{name}" for name in names[:8]], "an entry is read once"
    write(tmp_path, {"d/00.md": "# Other", "d/19.md": "# Other too", "d/07a.md": "# New"})
    paths.clear()
    second, cursor = listed_page(cursor)
    assert second == ["New", *(f"Title of {name}" for name in names[8:15])]
    assert paths == ["d/00.md", "d/07a.md", *(f"d/{name}" for name in names[8:15])]
    third, cursor = listed_page(cursor)
    assert third == [*(f"Title of {name}" for name in names[15:19]), "Other too", HELP_ENTRY.title]
    assert cursor is None


@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
def test_templates_wait_for_no_resource(
    root: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    service = ResourceService(Catalog([provider(root)]), ServerInfo("test", "1"), watch=never)
    session = service.open(lambda _method, _params: None, protocol)
    paths = looked_up(monkeypatch)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("the tree was looked at")

    monkeypatch.setattr(Folder, "walk", refused)
    answer = json.loads(service.call(session, "resources/templates/list", {}).json)
    assert len(answer["resourceTemplates"]) == 4
    assert paths == []


def never(_places: Sequence[str], _on_change: Callable[[], None]) -> Callable[[], None]:
    """Watch nothing."""
    return lambda: None


@pytest.mark.spec("GUIDE-37")
def test_broken_frontmatter(root: Path) -> None:
    text = '---\ntitle: "Broken\npriority: 1\n---\n# Heading\n'
    write(root, {"guides/broken.md": text})
    guide = provider(root)
    (content,) = guide.read(Uri.parse("guide://document/howto/broken.md"))
    assert content.text == text
    assert listed(guide)["guide://document/howto/broken.md"]["title"] == "Heading"
    (problem,) = [one for one in guide.diagnostics() if one.code == "FA781"]
    assert problem.path == "docs/guides/broken.md"
    assert problem.span is not None
    assert problem.span.start.line == 2
    assert problem.source_line == 'title: "Broken'


@pytest.mark.spec("GUIDE-37")
@pytest.mark.parametrize(
    ("frontmatter", "code", "message", "line"),
    [
        ("title: [a]", "FA782", "`title` is not a string", 2),
        ("a: 1\npriority: high", "FA782", "`priority` is not a number from 0 to 1", 3),
        ("priority: 2", "FA782", "`priority` is not a number from 0 to 1", 2),
        ("priority: true", "FA782", "`priority` is not a number from 0 to 1", 2),
        ("audience: everyone", "FA782", "`audience` holds `everyone`, which", 2),
        ("audience: 3", "FA782", "`audience` is not a list of strings", 2),
        ("tags: [a, 1]", "FA782", "`tags` is not a list of strings", 2),
        ("- a", "FA781", "the frontmatter cannot be read: it is not a mapping", 2),
        ("just words", "FA781", "the frontmatter cannot be read: it is not a mapping", 2),
        ("a: 1\na: 2", "FA781", "the frontmatter cannot be read: ", 3),
        ("a: &a [1]\nb: !!python/object x", "FA781", "the frontmatter cannot be read: ", 3),
    ],
)
def test_wrong_metadata(frontmatter: str, code: str, message: str, line: int) -> None:
    (problem,) = read_metadata(f"---\n{frontmatter}\n---\n".encode(), "a.md").problems
    assert (problem.code, problem.severity) == (code, "warning")
    assert problem.message.startswith(message)
    assert problem.span is not None
    assert problem.span.start.line == line


@pytest.mark.parametrize(
    ("text", "title", "problems"),
    [
        ("", None, 0),
        ("words\n# Later", None, 0),
        ("#hashtag", None, 0),
        ("# One\r\n# Two", "One", 0),
        ("---\n---\n# Below\n", "Below", 0),
        ("---\ntitle:\n---\n# Below\n", "Below", 0),
        ("\ufeff---\r\ntitle: Above\r\n---\r\n# Below\r\n", "Above", 0),
        ("---\nnever closed\n", None, 1),
        ("---\ntitle: " + "a: &x [" * 50 + "\n---\n", None, 1),
        ("\xff", None, 0),
    ],
)
def test_titles(text: str, title: str | None, problems: int) -> None:
    data = text.encode("latin-1") if text == "\xff" else text.encode()
    metadata = read_metadata(data, "a.md")
    assert metadata.title == title
    assert len(metadata.problems) == problems


def test_an_alias_bomb_is_refused_quickly() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 30)
    )
    start = time.process_time()
    (problem,) = read_metadata(f"---\n{bomb}---\n".encode(), "a.md").problems
    assert problem.code == "FA781"
    assert time.process_time() - start < 20


@pytest.mark.spec("GUIDE-38")
@pytest.mark.parametrize(
    ("template", "argument", "value", "given", "expected"),
    [
        ("guide://collection/{id}", "id", "", {}, ["both", "start"]),
        ("guide://collection/{id}", "id", "S", {}, ["start"]),
        ("guide://category/{name}", "name", "", {}, ["api", "both", "howto"]),
        ("guide://category/{name}", "name", "o", {}, ["both", "howto"]),
        (
            "guide://category/{name}/{+docId}",
            "docId",
            "",
            {"name": "howto"},
            ["install.md", "plain.txt", "use.md"],
        ),
        ("guide://category/{name}/{+docId}", "docId", "ref", {"name": "howto"}, []),
        ("guide://category/{name}/{+docId}", "docId", "ref", {"name": "api"}, ["ref.md"]),
        ("guide://category/{name}/{+docId}", "docId", "", {"name": "start"}, []),
        ("guide://category/{name}/{+docId}", "docId", "ref", {}, ["ref.md"]),
        ("guide://category/{name}/{+docId}", "name", "h", {"docId": "x"}, ["howto", "both"]),
        (
            "guide://document/{context}/{+docId}",
            "context",
            "",
            {},
            ["api", "both", "howto", "start"],
        ),
        ("guide://document/{context}/{+docId}", "docId", "", {"context": "start"}, ["install.md"]),
        (
            "guide://document/{context}/{+docId}",
            "docId",
            "",
            {"context": "both"},
            ["own.md", "ref.md", "what%3F.md"],
        ),
        ("guide://document/{context}/{+docId}", "docId", "u", {"context": "howto"}, ["use.md"]),
    ],
)
def test_completions(
    root: Path, template: str, argument: str, value: str, given: dict[str, str], expected: list[str]
) -> None:
    assert [*provider(root).complete(template, argument, value, given)] == expected


def test_what_cannot_be_completed(root: Path) -> None:
    for template, argument in (("guide://collection/{id}", "name"), ("guide://x/{y}", "y")):
        with pytest.raises(NotFound):
            list(provider(root).complete(template, argument, "", {}))


@pytest.mark.spec("GUIDE-38")
def test_what_is_completed_reads(root: Path) -> None:
    guide = provider(root)
    template = "guide://document/{context}/{+docId}"
    for context in guide.complete(template, "context", "", {}):
        for name in guide.complete(template, "docId", "", {"context": context}):
            uri = Uri.parse(template.replace("{context}", context).replace("{+docId}", name))
            assert guide.read(uri)


@pytest.mark.spec("GUIDE-3", "GUIDE-40")
def test_search(root: Path) -> None:
    (root / "api" / "pic.png").write_bytes(b"\xff question")
    catalog = Catalog([provider(root)])
    index = SearchIndex(catalog)
    assert [hit.uri for hit in index.search("question")] == ["guide://document/api/what%3F.md"]
    assert {hit.title for hit in index.search("install")} == {"Install it"}
    write(root, {"guides/new.md": "a question of names"})
    index.refresh()
    found = {hit.uri for hit in index.search("question")}
    assert found == {"guide://document/api/what%3F.md", "guide://document/howto/new.md"}
    for hit in found:
        assert "question" in str(catalog.read(hit)[0].text)
    assert found <= set(catalog.listing().uris)


def test_stamps_of_search_documents(root: Path) -> None:
    guide = provider(root)
    settle(root)
    before = {one.uri: one.stamp for one in guide.documents()}
    assert {one.uri: one.stamp for one in guide.documents()} == before
    write(root, {"guides/use.md": "1"})
    after = {one.uri: one.stamp for one in guide.documents()}
    assert [uri.text for uri in after if after[uri] != before[uri]] == [
        "guide://document/howto/use.md"
    ]
    (root / "guides" / "use.md").write_bytes(b"\xff")
    texts = {one.uri.text: one.text for one in guide.documents()}
    assert texts["guide://document/howto/use.md"]() is None
    assert texts["guide://document/howto/plain.txt"]() == "plain"


def test_tuples_are_lists_on_the_wire(root: Path) -> None:
    found = [json.loads(one.json) for one in provider(root).resources().values()]
    install = cast("dict[str, Any]", next(one for one in found if "_meta" in one))
    assert install["_meta"]["fast-agent/tags"] == ["setup", "linux"]
    assert install["annotations"]["audience"] == ["user", "assistant"]


@given(data=st.binary(max_size=80), yaml=st.text(alphabet="a:-[]{}&*!'\"\n #|>\0\t\r", max_size=40))
def test_every_document_has_metadata(data: bytes, yaml: str) -> None:
    for document in (data, b"---\n" + data + b"\n---\n", f"---\n{yaml}\n---\n# T".encode()):
        metadata = read_metadata(document, "a.md")
        assert metadata.title is None or metadata.title.strip()
