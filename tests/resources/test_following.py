"""The service over files on a real disk, with the real watcher."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from tests.patience import PATIENCE, wait_until

from fast_agent.resources.catalog import Catalog
from fast_agent.resources.folder import Folder
from fast_agent.resources.problem import NotFound, UnavailableResource
from fast_agent.resources.resource import Resource, ResourceContent, ResourceTemplate, media_type
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.resources.session import Change
from fast_agent.resources.uri import Uri
from fast_agent.text.safe_file import RefusedFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fast_agent.resources.provider import Document
    from fast_agent.resources.session import Session
    from fast_agent.text.json_value import JsonObject

HELLO: JsonObject = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Files:
    """A provider of the files of a folder, as small as one can be."""

    scheme = "file-test"

    def __init__(self, root: Path) -> None:
        self._folder = Folder(root)
        self._revision = 0
        self._paths: dict[Uri, str] = {}
        self.refresh()

    @property
    def revision(self) -> int:
        return self._revision

    def resources(self) -> Mapping[str, Resource]:
        return {uri.text: Resource(uri, path) for uri, path in self._paths.items()}

    def templates(self) -> Sequence[ResourceTemplate]:
        return ()

    def read(self, uri: Uri) -> Sequence[ResourceContent]:
        path = self._paths.get(uri)
        if path is None:
            raise NotFound(uri.text)
        try:
            data = self._folder.read(path, 1000).data
        except RefusedFileError as refusal:
            raise UnavailableResource(uri.text, refusal.message) from None
        return [ResourceContent.of_bytes(uri, media_type(path), data)]

    def complete(
        self, template: str, argument: str, value: str, given: Mapping[str, str]
    ) -> Iterable[str]:
        return ()

    def documents(self) -> Iterable[Document]:
        return ()

    def places(self) -> Sequence[str]:
        return [self._folder.path]

    def fingerprint(self, uri: Uri) -> str:
        path = self._paths.get(uri)
        return "" if path is None else str(self._folder.stamp(path))

    def refresh(self) -> Change:
        found = self._folder.walk().files
        paths = {Uri.of(self.scheme, file.path.split("/")): file.path for file in found}
        if paths != self._paths:
            self._paths = paths
            self._revision += 1
        return Change()


class Client:
    """A client that waits for notifications."""

    def __init__(self, service: ResourceService) -> None:
        self.service = service
        self.reported: list[tuple[str, JsonObject]] = []
        self._news = threading.Condition()
        self.session: Session = service.open(self._tell)
        self.ask("initialize", HELLO)

    def _tell(self, method: str, params: JsonObject) -> None:
        with self._news:
            self.reported.append((method, params))
            self._news.notify_all()

    def ask(self, method: str, params: JsonObject) -> JsonObject:
        answer = self.service.answer(self.session, method, params, 1)
        assert answer is not None
        return answer.data

    def wait(self, count: int) -> None:
        """Wait until so many notifications came."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.reported) >= count, PATIENCE)


@pytest.fixture
def service(tmp_path: Path) -> ResourceService:
    (tmp_path / "a.md").write_text("one")
    return ResourceService(Catalog([Files(tmp_path)]), ServerInfo("test", "1"))


@pytest.fixture
def client(service: ResourceService) -> Iterator[Client]:
    made = Client(service)
    yield made
    service.close(made.session)
    assert not service.following.is_watching


def test_an_edit_is_reported_and_read_at_once(client: Client, tmp_path: Path) -> None:
    uri: JsonObject = {"uri": "file-test://a.md"}
    client.ask("resources/subscribe", uri)
    for n in range(1, 6):
        known = len(client.reported)
        (tmp_path / "a.md").write_text(f"edit {n}")
        contents = client.ask("resources/read", uri)["contents"]
        assert contents == [{**uri, "mimeType": "text/markdown", "text": f"edit {n}"}]
        client.wait(known + 1)
    # A file that is read while it is written is notified twice.
    assert all(reported == ("notifications/resources/updated", uri) for reported in client.reported)


def test_a_new_file_is_reported_and_listed(client: Client, tmp_path: Path) -> None:
    client.ask("resources/list", {})
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "é b.md").write_text("x")
    client.wait(1)
    assert client.reported == [("notifications/resources/list_changed", {})]
    entries = client.ask("resources/list", {})["resources"]
    assert entries == [
        {"uri": "file-test://a.md", "name": "a.md"},
        {"uri": "file-test://new/%C3%A9%20b.md", "name": "new/é b.md"},
    ]


def test_a_change_made_just_before_the_watcher_is_up_is_not_lost(
    client: Client, tmp_path: Path
) -> None:
    client.ask("resources/subscribe", {"uri": "file-test://a.md"})
    (tmp_path / "a.md").write_text("at once")
    client.wait(1)


def test_the_watcher_goes_with_the_last_client(client: Client, service: ResourceService) -> None:
    before = set(threading.enumerate())

    def running() -> int:
        new = set(threading.enumerate()) - before
        return sum(one.name == "watch" for one in new)

    def threads(wanted: int) -> bool:
        wait_until(lambda: running() == wanted)
        return True

    assert threads(0)
    other = Client(service)
    for one in (client, other):
        one.ask("resources/subscribe", {"uri": "file-test://a.md"})
    assert threads(1)
    service.close(other.session)
    assert threads(1)
    client.ask("resources/unsubscribe", {"uri": "file-test://a.md"})
    assert threads(0)
