from __future__ import annotations

import json
import os
import threading
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from tests.patience import Rounds, wait_until
from tests.whole_file import write_whole

from fast_agent.errors import ResourceError
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.problem import NotFound
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.resources.skill.methods import skill_addition
from fast_agent.resources.skill.provider import SkillProvider
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.text.json_value import JsonObject

HELLO: JsonObject = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def add(root: Path, name: str, description: str = "Does it.", **files: str) -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "SKILL.md", f"---\nname: {name}\ndescription: {description}\n---\n")
    for file, text in files.items():
        (folder / file).write_text(text)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    add(root, "one", text="xxx")
    add(root, "two")
    return root


def serve(root: Path) -> SkillProvider:
    return SkillProvider([root], report=lambda _problem: None)


def prints(provider: SkillProvider, *uris: str) -> list[str]:
    return [provider.fingerprint(Uri.parse(uri)) for uri in uris]


def test_a_fingerprint_differs_when_a_read_would(root: Path) -> None:
    provider = serve(root)
    uris = [
        "skill://one/SKILL.md",
        "skill://one/text",
        "skill://one/_manifest",
        "skill://two/_manifest",
        "skill://index.json",
        "skill://prompt-xml",
        "skill://one/late",
        "skill://three/SKILL.md",
    ]
    seen = prints(provider, *uris)
    assert [one == "" for one in seen] == [False] * 6 + [True] * 2

    def changed() -> list[str]:
        nonlocal seen
        provider.refresh()
        before, seen = seen, prints(provider, *uris)
        return [uri for uri, old, new in zip(uris, before, seen, strict=True) if old != new]

    assert changed() == []
    (root / "one/text").write_text("yyy")
    assert changed() == ["skill://one/text", "skill://one/_manifest", "skill://index.json"]
    os.utime(root / "one/text", (1, 1))
    assert changed() == []
    (root / "one/late").write_text("late")
    assert changed() == ["skill://one/_manifest", "skill://index.json", "skill://one/late"]
    add(root, "two", "Does more.")
    assert changed() == ["skill://two/_manifest", "skill://index.json", "skill://prompt-xml"]
    add(root, "three")
    assert changed() == ["skill://index.json", "skill://prompt-xml", "skill://three/SKILL.md"]


def test_refresh_says_which_lists_differ(root: Path) -> None:
    provider = serve(root)

    def lists() -> tuple[bool, bool]:
        change = provider.refresh()
        assert change.updated == frozenset()
        return change.resources, change.tools

    assert lists() == (False, False)
    (root / "one/text").write_text("longer")
    assert lists() == (False, False)
    (root / "one/new").write_text("new")
    assert lists() == (False, False)
    add(root, "three")
    assert lists() == (True, True)
    add(root, "three", "Does it otherwise.")
    assert lists() == (True, True)
    (root / "two/SKILL.md").unlink()
    assert lists() == (True, True)
    (root / "one/SKILL.md").write_text("no longer a skill")
    assert lists() == (True, True)
    assert [one.path for one in provider.skills.skills] == ["three"]


@pytest.mark.spec("SEED-SKILL-19")
def test_a_file_is_hashed_once_for_each_state(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, _, files in os.walk(root):
        for file in files:
            os.utime(f"{folder}/{file}", (1, 1))  # an old file: its state is trusted
    provider = serve(root)
    hashed: list[bytes] = []

    def counted(data: bytes) -> str:
        hashed.append(data)
        return f"sha256:{sha256(data).hexdigest()}"

    monkeypatch.setattr("fast_agent.resources.skill.snapshot.digest_of", counted)
    first = provider.read(Uri.parse("skill://one/_manifest"))
    assert len(hashed) == 2
    assert provider.read(Uri.parse("skill://one/_manifest")) == first
    assert len(hashed) == 2
    (root / "one/text").write_text("two")
    assert provider.read(Uri.parse("skill://one/_manifest")) != first
    assert hashed[2:] == [b"two"]


@pytest.mark.spec("SEED-SKILL-12", "SEED-SKILL-13")
def test_a_client_hears_of_what_it_follows(root: Path) -> None:
    provider = serve(root)
    service = ResourceService(
        Catalog([provider]), ServerInfo("test", "1"), [skill_addition(provider)]
    )
    heard: list[str] = []

    def send(method: str, params: JsonObject) -> None:
        heard.append(f"{method.removeprefix('notifications/')} {params.get('uri', '')}".strip())

    session = service.open(send)
    service.answer(session, "initialize", HELLO, 1)
    assert not service.following.is_watching
    uris = ["skill://one/text", "skill://one/_manifest"]
    for uri in uris:
        service.answer(session, "resources/subscribe", {"uri": uri}, 2)
    assert service.following.is_watching
    write_whole(root / "one/text", "changed")
    wait_until(lambda: {f"resources/updated {uri}" for uri in uris} <= set(heard))
    heard.clear()
    service.answer(session, "resources/list", {}, 3)
    add(root, "three")
    wait_until(lambda: {"resources/list_changed", "tools/list_changed"} <= set(heard))
    assert f"resources/updated {uris[0]}" not in heard
    service.close(session)
    assert not service.following.is_watching


def test_reads_and_inventories_agree_while_files_change(root: Path) -> None:
    (root / "one/text").write_text("x")  # what the writer has not yet written is like the rest
    provider = serve(root)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            (root / "one/text").write_text("x" * (number % 50))
            (root / "one/extra").write_text(str(number))
            (root / "one/extra").unlink()
            time.sleep(0.002)

    writer = threading.Thread(target=write)
    writer.start()
    answered = 0
    try:
        rounds = Rounds(0.7)
        while rounds.more(enough=answered):
            try:
                (content,) = provider.read(Uri.parse("skill://one/_manifest"))
                provider.read(Uri.parse("skill://one/text"))
                provider.scan()
            except ResourceError:
                continue
            files = {one["path"]: one for one in json.loads(content.text or "")["files"]}
            size = files["text"]["size"]
            digest = f"sha256:{sha256(b'x' * size).hexdigest()}"
            assert files["text"]["hash"] == digest
            answered += 1
    finally:
        stop.set()
        writer.join()
    assert answered
    assert provider.read(Uri.parse("skill://one/text"))[0].bytes == (root / "one/text").read_bytes()


def test_many_ask_at_once_while_skills_come_and_go(root: Path) -> None:
    provider = serve(root)
    stop = threading.Event()
    failures: list[BaseException] = []

    def ask() -> None:
        uris = ["skill://one/_manifest", "skill://index.json", "skill://late/SKILL.md"]
        while not stop.is_set():
            for uri in uris:
                try:
                    provider.read(Uri.parse(uri))
                    provider.refresh()
                    provider.fingerprint(Uri.parse(uri))
                except ResourceError:
                    pass
                except BaseException as error:  # noqa: BLE001  (reported by the test)
                    failures.append(error)
                    return

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(40):
        folder = add(root, "late", f"Number {number}.", text="x")
        time.sleep(0.005)
        (folder / "text").unlink()
        (folder / "SKILL.md").unlink()
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    provider.scan()
    assert [one.path for one in provider.skills.skills] == ["one", "two"]


def test_a_file_of_a_skill_that_is_gone_is_gone(root: Path) -> None:
    for file in ("SKILL.md", "text"):
        os.utime(root / "one" / file, (1, 1))
    provider = serve(root)
    for _ in range(2):
        assert provider.read(Uri.parse("skill://one/text"))[0].text == "xxx"
    (root / "one/SKILL.md").write_text("no longer a skill")
    provider.refresh()
    with pytest.raises(NotFound):
        provider.read(Uri.parse("skill://one/text"))


@pytest.mark.spec("SEED-SKILL-14")
@pytest.mark.parametrize("swapped", ["file", "folder", "head"])
def test_a_link_swapped_in_is_never_followed(root: Path, tmp_path: Path, swapped: str) -> None:
    secret = tmp_path / "secret"
    add(tmp_path, "secret", "Secret.", text="secret")
    place, path = {
        "file": (root / "one/text", "text"),
        "folder": (root / "one", "text"),
        "head": (root / "one/SKILL.md", "SKILL.md"),
    }[swapped]
    other = {"file": secret / "text", "folder": secret, "head": secret / "SKILL.md"}[swapped]
    away = tmp_path / "away"
    provider = serve(root)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            place.rename(away)
            place.symlink_to(other)
            time.sleep(0.0005)
            place.unlink()
            away.rename(place)
            time.sleep(0.0005)

    swapper = threading.Thread(target=swap)
    swapper.start()
    answers: list[Any] = []
    try:
        rounds = Rounds(0.5)
        while rounds.more(enough=answers):
            for uri in (f"skill://one/{path}", "skill://one/_manifest", "skill://prompt-xml"):
                try:
                    answers += [one.text for one in provider.read(Uri.parse(uri))]
                except ResourceError as refusal:
                    answers.append(refusal.message)
    finally:
        stop.set()
        swapper.join()
    assert answers
    reported = "\n".join(answers).lower()
    assert "secret" not in reported
    assert str(tmp_path) not in reported
    assert sha256(b"secret").hexdigest() not in reported
