from __future__ import annotations

import logging
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
import watchfiles
from tests.patience import PATIENCE, wait_until

from fast_agent.resources import watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


KINDS = ["watchfiles", "poll"]


class Watched:
    """A folder under watch, and the moments something was noticed."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._moments: list[float] = []
        self._reported = threading.Condition()
        self.stop = watch.start_watch([str(place)], self._notice)
        assert self._wait(1)

    def _notice(self) -> None:
        with self._reported:
            self._moments.append(time.monotonic())
            self._reported.notify_all()

    def _wait(self, count: int, seconds: float = PATIENCE) -> bool:
        with self._reported:
            return self._reported.wait_for(lambda: len(self._moments) >= count, seconds)

    @property
    def count(self) -> int:
        return len(self._moments)

    def settle(self) -> None:
        """Wait until nothing has been noticed for a while."""
        known = -1
        while known != self.count:
            known = self.count
            time.sleep(0.15)

    def after(self, act: Callable[[], object], seconds: float = PATIENCE) -> float | None:
        """Seconds from an act until it is noticed; None where it is not."""
        self.settle()
        known = self.count
        begun = time.monotonic()
        act()
        return self._moments[known] - begun if self._wait(known + 1, seconds) else None


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way to watch, whatever the platform would choose."""
    name: str = request.param
    if name == "poll":
        monkeypatch.setitem(sys.modules, "watchfiles", None)
    return name


@pytest.fixture
def watched(kind: str, tmp_path: Path) -> Iterator[Watched]:
    place = tmp_path / "place"
    place.mkdir()
    made = Watched(place)
    yield made
    made.stop()


def test_notices_what_happens_below(watched: Watched) -> None:
    file = watched.place / "a.md"
    deep = watched.place / "x" / "y" / "z"

    def replace() -> None:
        (watched.place / "new").write_text("four")
        (watched.place / "new").rename(file)

    assert watched.after(lambda: file.write_text("one")) is not None
    assert watched.after(lambda: file.write_text("three")) is not None
    assert watched.after(lambda: deep.mkdir(parents=True)) is not None
    assert watched.after(lambda: (deep / "b.md").write_text("b")) is not None
    assert watched.after(replace) is not None
    assert watched.after(file.unlink) is not None


def test_the_place_may_go_and_come_back(watched: Watched) -> None:
    aside = watched.place.with_name("aside")
    assert watched.after(lambda: watched.place.rename(aside)) is not None
    assert watched.after(watched.place.mkdir) is not None
    assert watched.after(lambda: (watched.place / "a.md").write_text("a")) is not None


def test_another_place_may_come_under_the_name_at_once(watched: Watched) -> None:
    def replace() -> None:
        watched.place.rename(watched.place.with_name("aside"))
        watched.place.mkdir()

    assert watched.after(replace) is not None
    assert watched.after(lambda: (watched.place / "a.md").write_text("a")) is not None


def test_a_file_that_is_missing_is_waited_for(kind: str, tmp_path: Path) -> None:
    del kind
    file = tmp_path / "a" / "b" / "c.md"
    made = Watched(file)
    try:
        file.parent.mkdir(parents=True)
        assert made.after(lambda: file.write_text("one")) is not None
        assert made.after(lambda: file.write_text("three")) is not None
        assert made.after(file.unlink) is not None
        assert made.after(lambda: (file.parent / "other.md").write_text("x"), 0.3) is None
    finally:
        made.stop()


def test_links_below_are_not_followed(kind: str, tmp_path: Path) -> None:
    del kind
    outside = tmp_path / "outside"
    outside.mkdir()
    place = tmp_path / "place"
    place.mkdir()
    (place / "link").symlink_to(outside)
    made = Watched(place)
    try:
        assert made.after(lambda: (outside / "a.md").write_text("a"), 0.3) is None
        assert made.after(lambda: (place / "a.md").write_text("a")) is not None
    finally:
        made.stop()


def test_a_system_that_has_no_more_watches_to_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no(*_: object, **__: object) -> Iterator[set[object]]:
        raise RuntimeError("Error creating recommended watcher: Too many open files")
        yield set()

    monkeypatch.setattr(watchfiles, "watch", no)
    made = Watched(tmp_path)
    assert made.after(lambda: (tmp_path / "a.md").write_text("a")) is not None
    made.stop()


def test_a_burst_is_reported_in_few_calls(watched: Watched) -> None:
    watched.settle()
    known = watched.count
    begun = time.monotonic()
    for number in range(200):
        (watched.place / f"{number}.md").write_text("x")
    spent = time.monotonic() - begun
    wait_until(lambda: watched.count > known)
    watched.settle()
    # Two calls are never nearer than the quiet that ends a burst; here all take but a moment.
    assert watched.count - known <= 12 + spent / 0.015


def watchers() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name == "watch"}


def test_nothing_after_stop(watched: Watched) -> None:
    watched.settle()
    before = watchers()
    watched.stop()
    watched.stop()
    known = watched.count
    (watched.place / "a.md").write_text("a")
    wait_until(lambda: before - watchers())
    assert watched.count == known


@pytest.mark.usefixtures("kind")
def test_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    made = Watched(tmp_path / "guide.yaml")
    assert made.after(lambda: made.place.write_text("a")) is not None
    assert made.after(lambda: made.place.write_text("ab")) is not None
    made.stop()


def test_ignored_folders_wake_nobody(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    made = Watched(tmp_path)
    assert made.after(lambda: (tmp_path / ".git" / "index").write_text("x"), 0.3) is None
    made.stop()


def test_a_refresh_that_fails_is_logged_and_not_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls = threading.Semaphore(0)

    def fail() -> None:
        calls.release()
        raise ValueError("broken")

    with caplog.at_level(logging.ERROR):
        stop = watch.start_watch([str(tmp_path)], fail)
        assert calls.acquire(timeout=PATIENCE)
        time.sleep(0.05)
        (tmp_path / "a").write_text("a")
        assert calls.acquire(timeout=PATIENCE)
        stop()
    assert "ValueError: broken" in caplog.text


def test_no_descriptor_is_lost(tmp_path: Path) -> None:
    from pathlib import Path as RealPath

    def descriptors() -> int:
        return len(list(RealPath("/proc/self/fd").iterdir()))

    before = descriptors()
    for _ in range(5):
        Watched(tmp_path).stop()
    wait_until(lambda: descriptors() <= before)


@pytest.mark.usefixtures("kind")
def test_a_shallow_watch_looks_no_deeper(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    reported = threading.Semaphore(0)
    stop = watch.start_watch([str(tmp_path)], reported.release, deep=False)
    try:
        assert reported.acquire(timeout=PATIENCE)
        time.sleep(0.15)
        while reported.acquire(blocking=False):
            pass
        (tmp_path / "deep" / "file").write_text("x")
        assert not reported.acquire(timeout=0.2)
        (tmp_path / "file").write_text("x")
        assert reported.acquire(timeout=PATIENCE)
    finally:
        stop()
