from __future__ import annotations

import gc
import sqlite3
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.resources.questions.answers import missed, questions

from fast_agent.resources.provider import Document
from fast_agent.resources.search import SearchIndex
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.resources.catalog import Catalog


class Texts:
    """A catalog of texts whose stamps are counted up, and which counts what is read."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.stamps = dict.fromkeys(texts, 0)
        self.reads: list[str] = []
        self.revision = object()

    def put(self, name: str, text: str) -> None:
        self.texts[name] = text
        self.stamps[name] = self.stamps.get(name, 0) + 1

    def listing(self) -> object:
        return self.revision

    def documents(self) -> Iterator[Document]:
        for name in list(self.texts):
            uri = Uri.of("guide", ["document", "docs", name])
            yield Document(uri, None, str(self.stamps[name]), lambda name=name: self._read(name))

    def _read(self, name: str) -> str | None:
        self.reads.append(name)
        text = self.texts[name]
        return None if text == "binary" else text


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def index_of(texts: Texts, clock: Clock | None = None) -> SearchIndex:
    return SearchIndex(cast("Catalog", texts), clock or Clock())


@pytest.fixture
def texts() -> Texts:
    return Texts(
        {
            "auth.md": "# Authentication\n\n## Tokens\nA token expires in an hour.\n\n## Résumé\nx",
            "deploy.md": "# Deploying\n\nRun the deployment script.\n\n## Rollback\nUndo a deploy.",
            "logo.png": "binary",
            "plain.md": "No heading, only a token of thanks.",
        }
    )


def test_finds_sections(texts: Texts) -> None:
    index = index_of(texts)
    assert texts.reads == []
    [hit, other] = index.search("token")
    assert hit.uri == "guide://document/docs/auth.md"
    assert (hit.title, hit.heading) == ("Authentication", "Authentication > Tokens")
    assert hit.snippet == "## Tokens A token expires in an hour."
    assert hit.tokens == 10
    assert hit.score > other.score
    assert (other.uri, other.title, other.heading) == ("guide://document/docs/plain.md", "", "")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tokens", ["auth.md", "plain.md"]),
        ("deployed", ["deploy.md", "deploy.md"]),
        ("RESUME", ["auth.md"]),
        ("rollback deploy", ["deploy.md", "deploy.md"]),
        ("how do I undo the unheard-of", ["deploy.md"]),
        ("the", ["deploy.md"]),
        ("nothing-like-it", []),
        ("", []),
        ("?!* ()", []),
    ],
)
def test_queries(texts: Texts, query: str, found: list[str]) -> None:
    hits = index_of(texts).search(query)
    assert [hit.uri.rpartition("/")[2] for hit in hits] == found


@given(st.text(max_size=60) | st.text('"*^:()-+{}. ANDORNEAR\0token', max_size=40))
def test_nothing_in_a_query_is_syntax(query: str) -> None:
    shared = index_of(Texts({"a.md": "token AND or NEAR"}))
    for hit in shared.search(query):
        assert hit.uri == "guide://document/docs/a.md"


def test_only_what_changed_is_read_again(texts: Texts) -> None:
    clock = Clock()
    index = index_of(texts, clock)
    assert index.refresh() == 4
    texts.reads.clear()
    texts.put("plain.md", "# Zebra\nstripes")
    texts.put("new.md", "zebra crossing")
    del texts.texts["auth.md"]
    assert index.search("zebra") == ()
    clock.now += 10
    assert {hit.uri[-8:] for hit in index.search("zebra")} == {"plain.md", "s/new.md"}
    assert texts.reads == ["plain.md", "new.md"]
    assert index.search("token") == ()
    texts.put("new.md", "horse")
    texts.revision = object()
    assert [hit.uri[-8:] for hit in index.search("zebra")] == ["plain.md"]
    texts.put("new.md", "binary")
    assert index.refresh() == 4
    assert index.search("horse") == ()


def test_looking_takes_a_tenth_of_the_time_at_most() -> None:
    clock = Clock()

    class Slow(Texts):
        """A catalog that takes half a second to be looked at."""

        looks = 0

        def documents(self) -> Iterator[Document]:
            self.looks += 1
            clock.now += 0.5
            return super().documents()

    texts = Slow({"a.md": "zebra"})
    index = index_of(texts, clock)
    for _ in range(1000):
        index.search("zebra")
        clock.now += 0.1
    assert texts.looks > 15
    assert texts.looks * 0.5 <= clock.now / 10 + 1
    texts.put("a.md", "horse")
    clock.now += 5
    assert index.search("horse")
    texts.put("a.md", "mule")
    clock.now += 1.1
    assert index.search("mule"), "what has just changed is looked at soon again"


def test_a_text_that_cannot_be_read_leaves_the_index_whole(texts: Texts) -> None:
    index = index_of(texts)
    index.refresh()
    texts.put("plain.md", "other")
    del texts.texts["auth.md"]
    broken = True

    def read(name: str) -> str | None:
        if broken:
            raise OSError("gone")
        return texts.texts[name]

    texts._read = read
    with pytest.raises(OSError, match="gone"):
        index.refresh()
    broken = False
    assert index.refresh() == 3
    assert [hit.uri[-8:] for hit in index.search("other")] == ["plain.md"]
    index.close()
    assert index.search("token") == ()


def test_an_index_that_nobody_holds_closes_its_database(
    texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noted(*places: Any, **options: Any) -> sqlite3.Connection:
        made.append(connect(*places, **options))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    assert index_of(texts).search("token")
    gc.collect()
    (database,) = made
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        database.execute("SELECT 1")


def test_no_document_crowds_the_others_out() -> None:
    many = "".join(f"# Part {n}\nzebra\n" for n in range(30))
    index = index_of(Texts({"many.md": many, "one.md": "Zebra, and a great deal else. " * 20}))
    assert len(index.search("zebra", limit=5)) <= 5
    assert [hit.uri[-7:] for hit in index.search("zebra")].count("many.md") == 2
    assert index.search("zebra", limit=0) == ()


def test_a_long_section_is_found_in_pieces() -> None:
    index = index_of(Texts({"a.md": "# Long\n" + "filler " * 5000 + "needle"}))
    [hit] = index.search("needle")
    assert "needle" in hit.snippet
    assert hit.tokens < 2000


def test_threads(texts: Texts) -> None:
    index = index_of(texts)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(len(index.search("token")))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2] * 8


@pytest.mark.spec("SEARCH-1")
@pytest.mark.parametrize(("name", "least"), [("tuned", 26), ("held_out", 24)])
def test_the_first_hit_answers_questions_about_the_packaged_documents(
    name: str, least: int
) -> None:
    wrong = missed(name)
    assert len(questions(name)) - len(wrong) >= least, wrong


def test_words_that_say_nothing_make_no_heading_longer() -> None:
    texts = Texts(
        {
            "a.md": "# A\n\n## What the limits are for\n\nBounds.\n",
            "b.md": "# B\n\n## Limits overview\n\nBounds.\n",
        }
    )
    first, second = index_of(texts).search("limits")
    assert (first.heading, second.heading) == ("A > What the limits are for", "B > Limits overview")


@pytest.mark.spec("SEARCH-2")
def test_a_word_of_the_heading_outweighs_words_of_the_text() -> None:
    texts = Texts(
        {
            "a.md": "# A\n\n## Limits\n\nThe `request_params` of a card.\n",
            "b.md": "# B\n\n## `request_params`\n\nBounds.\n",
            "c.md": "# C\n\n## Other\n\n" + "request params " * 20,
        }
    )
    hit, *_ = index_of(texts).search("what are request_params?")
    assert (hit.uri, hit.heading) == ("guide://document/docs/b.md", "B > request_params")


@pytest.mark.spec("SEARCH-1")
@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("erase a session", "b.md"),
        ("session pruning", "a.md"),
        ("failover of the primary", "c.md"),
    ],
)
def test_other_words_help_in_fences_and_words_that_are_close(query: str, place: str) -> None:
    texts = Texts(
        {
            "a.md": "# Commands\n\n## `tool session prune`\n\n```text\nPrune sessions.\n```\n",
            "b.md": "# Commands\n\n## `tool session delete`\n\n```text\nRemove one.\n```\n",
            "c.md": "# Servers\n\n## Roles\n\nFailover of the primary." + " Others follow it." * 30,
            "d.md": "# Copies\n\n## Roles\n\nThe primary one is copied, no other one. Failover.",
        }
    )
    hit, *_ = index_of(texts).search(query)
    assert hit.uri == f"guide://document/docs/{place}"


def test_words_that_all_headings_of_a_document_share_make_no_heading_longer() -> None:
    commands = "".join(
        f"## `big tool {name}`\n\nText.\n\n" for name in ("list", "trust", "go", "x")
    )
    texts = Texts({"a.md": "# A\n\n## Trust figures\n\nText.\n", "b.md": f"# B\n\n{commands}"})
    hit, *_ = index_of(texts).search("trust")
    assert hit.heading == "B > big tool trust"
