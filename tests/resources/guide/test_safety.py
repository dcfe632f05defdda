from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.patience import Rounds

from fast_agent.config.home import is_never_served
from fast_agent.errors import ResourceError
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.folder import Folder
from fast_agent.resources.guide.config import load_guide
from fast_agent.resources.guide.provider import GuideProvider
from fast_agent.resources.problem import NotFound, TooLarge, UnavailableResource
from fast_agent.resources.resource import DEFAULT_LIMITS, Limits
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fast_agent.resources.folder import Tree
    from fast_agent.text.safe_file import FileBytes


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def provider(root: Path, limits: Limits | None = None) -> GuideProvider:
    return GuideProvider(load_guide(root, "docs"), limits or Limits())


def uris(guide: GuideProvider) -> list[str]:
    assert guide.revision  # asked for on every list
    return [uri for uri in guide.resources() if uri != "guide://help"]


def notes(guide: GuideProvider) -> list[tuple[str, str, str]]:
    return [(one.code, one.path, one.message) for one in guide.diagnostics()]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, {"secret/key.md": "secret"})
    return write(tmp_path / "docs", {"d/a.md": "a", ".guide.yaml": "categories: { d: {} }"})


@pytest.mark.spec("GUIDE-41")
def test_links_are_not_followed(root: Path) -> None:
    secret = root.parent / "secret"
    (root / "d" / "file.md").symlink_to(secret / "key.md")
    (root / "d" / "folder").symlink_to(secret)
    (root / "d" / "up.md").symlink_to("../d/a.md")
    guide = provider(root)
    assert uris(guide) == ["guide://document/d/a.md"]
    assert [note[:2] for note in notes(guide)] == [
        ("FA779", f"docs/d/{name}") for name in ("file.md", "folder", "up.md")
    ]
    for name in ("file.md", "folder/key.md", "up.md"):
        with pytest.raises(NotFound):
            guide.read(Uri.parse(f"guide://document/d/{name}"))


@pytest.mark.spec("GUIDE-41")
def test_a_folder_swapped_for_a_link_is_refused(root: Path) -> None:
    write(root, {"d/deep/key.md": "fine"})
    guide = provider(root)
    uri = Uri.parse("guide://document/d/deep/key.md")
    assert guide.read(uri)[0].text == "fine"
    (root / "d" / "deep").rename(root / "d" / "other")
    (root / "d" / "deep").symlink_to(root.parent / "secret")
    with pytest.raises(UnavailableResource, match="goes through the link"):
        guide.read(uri)


@pytest.mark.spec("GUIDE-41")
def test_a_link_swapped_during_reads_never_leads_out(root: Path) -> None:
    guide = provider(root)
    plain, link = root / "d" / "a.md", root / "d" / ".link"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            link.symlink_to(root.parent / "secret" / "key.md")
            link.replace(plain)
            write(root, {"d/.plain": "a"})
            (root / "d" / ".plain").replace(plain)

    thread = threading.Thread(target=swap)
    thread.start()
    seen: set[str | None] = set()
    try:
        rounds = Rounds(0.5)
        while rounds.more(enough="a" in seen):
            for uri in ("guide://document/d/a.md", "guide://category/d", "guide://category/d/*"):
                try:
                    seen |= {content.text for content in guide.read(Uri.parse(uri))}
                except ResourceError as problem:
                    seen.add(type(problem).__name__)
    finally:
        stop.set()
        thread.join()
    assert "a" in seen
    assert seen <= {"a", "NotFound", "UnavailableResource"}


def test_the_root_may_be_a_link_once(root: Path) -> None:
    linked = root.parent / "linked"
    linked.symlink_to(root)
    guide = provider(linked)
    linked.unlink()
    linked.symlink_to(root.parent / "secret")
    assert guide.read(Uri.parse("guide://document/d/a.md"))[0].text == "a"


@pytest.mark.spec("GUIDE-42")
def test_what_is_hidden_is_not_served(root: Path) -> None:
    write(
        root,
        {
            "d/.hidden.md": "",
            "d/.git/config": "",
            "d/node_modules/x/readme.md": "",
            "d/__pycache__/a.pyc": "",
            "d/.env": "",
        },
    )
    guide = provider(root)
    assert uris(guide) == ["guide://document/d/a.md"]
    assert notes(guide) == []
    for name in (".hidden.md", ".git/config", ".env"):
        with pytest.raises(NotFound):
            guide.read(Uri.parse(f"guide://document/d/{name}"))


def test_a_hidden_directory_may_be_a_category(root: Path) -> None:
    write(
        root,
        {
            ".guide.yaml": "categories: { all: { dir: . }, gh: { dir: .github/docs } }",
            ".github/docs/a.md": "a",
            ".github/docs/.b.md": "b",
        },
    )
    assert uris(provider(root)) == ["guide://document/all/d/a.md", "guide://document/gh/a.md"]


@pytest.mark.spec("GUIDE-43")
def test_hostile_names_are_left_out_and_reported(root: Path) -> None:
    folder = os.fsencode(root / "d")
    hostile = [
        b"new\nline.md",
        b"bad\xff.md",
        b"back\\slash.md",
        b"esc\x1b[31m.md",
        b"\xed\xa0\x80",
    ]
    for name in hostile:
        with open(os.path.join(folder, name), "wb"):  # noqa: PTH118, PTH123
            pass
    deep = "d/" + "/".join(["é" * 100] * 5)
    write(root, {f"{deep}/long.md": "", "d/e\u0301.md": "decomposed", "d/é.md": "composed"})
    guide = provider(root)
    assert len(uris(guide)) == 2
    found = notes(guide)
    assert len(found) == len(hostile) + 2
    assert {code for code, _, _ in found} == {"FA779"}
    assert all(text.isprintable() for _, path, message in found for text in (path, message))
    assert sum("no URI can hold" in message for _, _, message in found) == len(hostile)
    assert sum("too long" in message for _, _, message in found) == 1


def test_many_hostile_names_are_counted(root: Path) -> None:
    for number in range(150):
        (root / "d" / f"link{number}").symlink_to("a.md")
    found = notes(provider(root))
    assert len(found) == 101
    assert found[-1][2] == "50 more files are not served"


def test_pipes_and_sockets_are_not_served(root: Path) -> None:
    os.mkfifo(root / "d" / "pipe.md")
    guide = provider(root)
    assert uris(guide) == ["guide://document/d/a.md"]
    (root / "d" / "a.md").unlink()
    os.mkfifo(root / "d" / "a.md")
    with pytest.raises((UnavailableResource, NotFound)):
        guide.read(Uri.parse("guide://document/d/a.md"))


def test_a_decomposed_name_reads_by_its_composed_uri(root: Path) -> None:
    write(root, {"d/e\u0301/cafe\u0301.md": "yes"})
    guide = provider(root)
    for text in ("guide://document/d/%C3%A9/caf%C3%A9.md", "guide://category/d/é/cafe\u0301"):
        assert guide.read(Uri.parse(text))[0].text == "yes"


@pytest.mark.spec("GUIDE-26")
def test_a_tree_too_large_is_refused_not_cut(root: Path) -> None:
    write(root, {f"big/{number}.md": "" for number in range(30)})
    write(
        root,
        {
            ".guide.yaml": """\
categories: { d: {}, big: {} }
collections: { c: { members: [d, big/1.md] } }
"""
        },
    )
    guide = provider(root, Limits(tree_files=20))
    assert uris(guide) == ["guide://document/d/a.md"]
    for uri in ("category/big", "category/big/1.md", "document/big/1.md", "collection/c"):
        with pytest.raises(TooLarge) as raised:
            guide.read(Uri.parse(f"guide://{uri}"))
        assert raised.value.limit == 20
    assert [code for code, _, _ in notes(guide)] == ["FA780"]
    assert "| `guide://category/big` | too many |" in str(guide.read(Uri.parse("guide://help")))


@pytest.mark.spec("GUIDE-26")
def test_one_file_in_many_categories_counts_each_time(root: Path) -> None:
    many = ", ".join(f"c{number}: {{ dir: d }}" for number in range(11))
    write(root, {".guide.yaml": f"categories: {{ {many} }}", "d/b.md": "b"})
    guide = provider(root, Limits(tree_files=20))
    assert len(uris(guide)) == 20
    assert [code for code, _, _ in notes(guide)] == ["FA780"]
    with pytest.raises(TooLarge, match="holds 22 documents, more than the limit of 20"):
        guide.read(Uri.parse("guide://category/c9"))


def test_many_categories_take_no_more_than_their_number(tmp_path: Path) -> None:
    few, many = (_calls_for_categories(tmp_path / str(count), count) for count in (200, 800))
    assert many < 5 * few


def _calls_for_categories(root: Path, count: int) -> int:
    """Count the calls that a read and the places of a guide of so many categories take."""
    for number in range(count):
        (root / f"n{number}" / "deep").mkdir(parents=True)
    text = "".join(f"  n{number}: {{ dir: n{number}/deep }}\n" for number in range(count))
    write(root, {"d/a.md": "a", ".guide.yaml": f"categories:\n  d: {{}}\n{text}"})
    guide = provider(root)
    calls = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(counted)
    try:
        assert guide.read(Uri.parse("guide://category/d"))[0].text == "a"
        assert len(guide.places()) == count + 1
    finally:
        sys.setprofile(None)
    return calls


def test_a_docroot_that_vanishes(root: Path) -> None:
    guide = provider(root)
    assert len(uris(guide)) == 1
    root.rename(root.parent / "moved")
    for uri in ("guide://document/d/a.md", "guide://category/d"):
        with pytest.raises(NotFound):
            guide.read(Uri.parse(uri))
    assert uris(guide) == []
    assert guide.refresh() is not None
    (root.parent / "moved").rename(root)
    assert guide.read(Uri.parse("guide://category/d"))[0].text == "a"


@given(
    parts=st.lists(
        st.sampled_from(["help", "category", "collection", "document", "d", "a.md", "a", "*", "**"])
        | st.text(max_size=6),
        min_size=1,
        max_size=5,
    )
)
def test_every_uri_is_answered_or_refused(
    parts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.getbasetemp() / "any-uri"
    guide = provider(write(base, {"d/a.md": "a", "d/b.md": "b"}))
    catalog = Catalog([guide])
    try:
        contents = catalog.read("guide://" + "/".join(parts))
    except ResourceError as problem:
        reported = problem.message + str(problem.hint)
    else:
        assert len(contents) == 1
        reported = ""
    assert str(base) not in reported


class Counting(Folder):
    """A folder that notes what is done with it."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.reads = 0
        self.walks = 0

    def read(self, path: str, limit: int) -> FileBytes:
        self.reads += 1
        return super().read(path, limit)

    def walk(
        self,
        limits: Limits = DEFAULT_LIMITS,
        below: str = "",
        skip: Callable[[str], bool] = is_never_served,
    ) -> Tree:
        self.walks += 1
        return super().walk(limits, below, skip)


@pytest.mark.spec("GUIDE-45", "GUIDE-46")
def test_one_document_is_read_without_looking_at_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {f"d/{n % 20}/{n:03}.md": f"text {n}" for n in range(500)})
    folders: list[Counting] = []

    def counting(root: str, _name: str) -> Counting:
        folders.append(Counting(root))
        return folders[-1]

    monkeypatch.setattr("fast_agent.resources.guide.provider.Folder", counting)
    guide = provider(tmp_path)
    (folder,) = folders
    assert (folder.reads, folder.walks) == (0, 0)  # nothing before it is asked for
    assert len(guide.read(Uri.parse("guide://help"))) == 1
    assert (folder.reads, folder.walks) == (0, 1)
    looks: list[str] = []
    monkeypatch.setattr("fast_agent.resources.guide.index.folder_state", looks.append)
    for number in range(0, 500, 5):
        uri = Uri.parse(f"guide://document/d/{number % 20}/{number:03}.md")
        assert guide.read(uri)[0].text == f"text {number}"
    assert (folder.reads, folder.walks, looks) == (100, 1, [])
