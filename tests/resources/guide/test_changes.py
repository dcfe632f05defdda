from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.resources.guide.small_guide import META, listed, make_root, provider, settle, write

from fast_agent.resources.catalog import Catalog
from fast_agent.resources.folder import Folder, Tree
from fast_agent.resources.guide.config import load_guide
from fast_agent.resources.guide.provider import GuideProvider
from fast_agent.resources.search import SearchIndex
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.text.json_value import JsonObject
    from fast_agent.text.safe_file import FileStamp


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path)


def test_the_revision_stays_while_nothing_changes(root: Path) -> None:
    settle(root)
    guide = provider(root)
    before = guide.revision
    resources = guide.resources()
    shown = resources["guide://document/api/ref.md"]
    assert guide.revision == before
    assert guide.resources() is resources
    assert resources["guide://document/api/ref.md"] is shown
    os.utime(root / "guides", (1_700_000_000, 1_700_000_000))
    assert guide.revision == before
    assert not guide.refresh()


@pytest.mark.parametrize("moved", ["guides", ""])
def test_a_directory_that_is_away_during_a_look_alone_is_found_afterwards(
    root: Path, moved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(root)
    guide, walk = provider(root), Folder.walk
    folder = root / moved
    away = folder.with_name("away")

    def walk_without(*arguments: Any) -> Tree:
        folder.rename(away)
        try:
            return walk(*arguments)
        finally:
            away.rename(folder)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "walk", walk_without)
        assert "guide://document/howto/use.md" not in listed(guide)
    assert "guide://document/howto/use.md" in listed(guide)


@pytest.mark.parametrize(
    "change", ["edit", "remove", "add", "rename", "make a folder", "touch", "nothing"]
)
def test_the_revision_grows_when_the_list_differs(root: Path, change: str) -> None:
    settle(root)
    guide = provider(root)
    revision = guide.revision
    before = listed(guide)
    match change:
        case "edit":
            write(root, {"guides/use.md": "# Used"})
        case "remove":
            (root / "guides" / "use.md").unlink()
        case "add":
            write(root, {"guides/more.md": "more"})
        case "rename":
            (root / "api" / "ref.md").rename(root / "api" / "reference.md")
        case "make a folder":
            (root / "both" / "deep").mkdir()
        case "touch":
            os.utime(root / "api" / "ref.md", (5, 5))
        case _:
            pass
    grown = guide.revision > revision
    assert grown == (change not in {"make a folder", "nothing"})
    assert grown == (listed(guide) != before)
    assert listed(guide) == listed(provider(root))


def test_an_edit_in_the_same_moment_is_seen(root: Path) -> None:
    guide = provider(root)
    for number in range(20):
        write(root, {"guides/use.md": f"# Use {number:02}"})
        assert guide.revision
        assert listed(guide)["guide://document/howto/use.md"]["title"] == f"Use {number:02}"
        write(root, {f"guides/new{number}.md": "new"})
        assert guide.read(Uri.parse(f"guide://category/howto/new{number}"))[0].text == "new"


def test_a_search_looks_at_a_large_root_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {f"many/{number:04}.md": f"zebra {number}" for number in range(1100)})
    settle(tmp_path)
    now = [0.0]
    guide = GuideProvider(load_guide(tmp_path), monotonic=lambda: now[0])
    index = SearchIndex(Catalog([guide]), lambda: now[0])
    assert index.search("zebra")
    looked: list[str] = []
    stamp = Folder.stamp

    def count(folder: Folder, path: str) -> FileStamp | None:
        looked.append(path)
        return stamp(folder, path)

    monkeypatch.setattr(Folder, "stamp", count)
    assert index.search("zebra")
    assert looked == []
    now[0] += 1.5
    assert index.search("zebra")
    assert len(looked) == 1100
    write(tmp_path, {"many/0700.md": "horse, in place"})
    assert not index.search("horse")
    now[0] += 1.5
    assert index.search("horse")


def test_a_large_root_is_looked_at_once_a_second(tmp_path: Path) -> None:
    write(tmp_path, {f"d/{n:04}.md": f"# T{n}" for n in range(1001)})
    settle(tmp_path)
    now = [100.0]
    guide = GuideProvider(load_guide(tmp_path), monotonic=lambda: now[0])
    listed(guide)
    revision = guide.revision
    write(tmp_path, {"d/0500.md": "# Other"})
    assert guide.revision == revision
    assert guide.read(Uri.parse("guide://document/d/0500.md"))[0].text == "# Other"
    now[0] += 1.01
    assert guide.revision > revision
    assert listed(guide)["guide://document/d/0500.md"]["title"] == "Other"
    write(tmp_path, {"d/new.md": "new"})
    assert guide.revision > revision + 1


@pytest.mark.spec("GUIDE-39")
@pytest.mark.parametrize(
    ("uri", "change", "other"),
    [
        ("guide://document/howto/use.md", "guides/use.md", "guides/plain.txt"),
        ("guide://category/howto/use", "guides/use.md", "guides/plain.txt"),
        ("guide://category/howto", "guides/plain.txt", "api/ref.md"),
        ("guide://category/howto", "guides/new/more.md", "api/new.md"),
        ("guide://category/howto/*.txt", "guides/more.txt", "guides/more.md"),
        ("guide://collection/both", "api/ref.md", "both/own.md"),
        ("guide://collection/both", "api/new.md", "guides/new.md"),
        ("guide://document/howto/later.md", "guides/later.md", "guides/sooner.md"),
        ("guide://help", "guides/later.md", "guides/use.md"),
    ],
)
def test_fingerprints(root: Path, uri: str, change: str, other: str) -> None:
    settle(root)
    guide = provider(root)
    followed = Uri.parse(uri)
    before = guide.fingerprint(followed)
    write(root, {other: "other"})
    guide.refresh()
    assert guide.fingerprint(followed) == before
    write(root, {change: "changed"})
    guide.refresh()
    after = guide.fingerprint(followed)
    assert after != before
    write(root, {change: "CHANGED"})
    guide.refresh()
    assert (guide.fingerprint(followed) == after) == (uri == "guide://help")
    os.utime(root / change, (9, 9))
    (root / change).unlink()
    guide.refresh()
    assert guide.fingerprint(followed) != after


def test_a_touch_changes_no_single_document(root: Path) -> None:
    settle(root)
    guide = provider(root)
    uri = Uri.parse("guide://document/howto/use.md")
    before = guide.fingerprint(uri)
    os.utime(root / "guides" / "use.md", (9, 9))
    assert guide.fingerprint(uri) == before


def test_what_reads_nothing_has_no_fingerprint(root: Path) -> None:
    guide = provider(root)
    write(root, {"guides/use.txt": ""})
    for uri in (
        "guide://document/howto/no",
        "guide://category/howto/use",
        "guide://no",
        "guide://collection/x",
    ):
        assert guide.fingerprint(Uri.parse(uri)) == ""


@pytest.mark.spec("GUIDE-39")
def test_the_list_has_changed_when_what_it_tells_has(root: Path) -> None:
    settle(root)
    guide = provider(root)
    seen = [guide.revision]

    def grown() -> bool:
        guide.refresh()
        seen.append(guide.revision)
        return seen[-1] > seen[-2]

    assert not grown()
    write(root, {"guides/first.md": "x"})
    assert grown()  # nobody has listed them yet, but somebody may follow the list
    write(root, {"guides/first.md": "y longer"})
    assert not grown()  # nobody was told what is in it
    assert listed(guide)["guide://document/howto/first.md"]["size"] == 8
    write(root, {"guides/first.md": "y longer still"})
    assert grown()
    write(root, {"guides/first.md": "# Now with a title"})
    assert grown()
    (root / "guides" / "first.md").unlink()
    assert grown()


@pytest.mark.spec("GUIDE-39")
def test_clients_hear_of_changes(root: Path) -> None:
    service = ResourceService(Catalog([provider(root)]), ServerInfo("test", "1"))
    heard: list[tuple[str, str]] = []
    changed = threading.Event()

    def send(method: str, params: JsonObject) -> None:
        heard.append((method, str(params.get("uri"))))
        changed.set()

    session = service.open(send)
    uris = ["guide://document/howto/use.md", "guide://category/howto", "guide://category/api"]
    service.answer(
        session,
        "subscriptions/listen",
        {"_meta": META, "notifications": {"resourceSubscriptions": uris}},
        7,
    )
    time.sleep(0.2)
    heard.clear()
    changed.clear()
    write(root, {"guides/use.md": "changed"})
    assert changed.wait(60)
    deadline = time.monotonic() + 60
    while len(heard) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert {uri for _, uri in heard} == set(uris[:2])
    service.close(session)


def test_places(root: Path) -> None:
    real = os.path.realpath(root)
    assert sorted(provider(root).places()) == [f"{real}/{one}" for one in ("api", "both", "guides")]
    (root / "both" / "own.md").unlink()
    (root / "both").rmdir()
    guide = provider(root)
    assert guide.places() == (real,)
    write(root, {"both/later.md": "later"})
    assert guide.refresh() is not None
    assert guide.read(Uri.parse("guide://category/both"))[0].text == "later"


def test_several_threads(root: Path) -> None:
    guide = provider(root)
    faults: list[BaseException] = []
    stop = time.monotonic() + 0.5

    def work(number: int) -> None:
        try:
            while time.monotonic() < stop:
                if number == 0:
                    write(root, {"guides/coming.md": "x"})
                    guide.refresh()
                    (root / "guides" / "coming.md").unlink()
                else:
                    assert guide.revision
                    assert len(guide.resources()) in {7, 8}
                    assert guide.read(Uri.parse("guide://category/howto"))
                    guide.fingerprint(Uri.parse("guide://category/howto"))
        except BaseException as fault:  # noqa: BLE001
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
