"""Integrity: a checksum for each event of a session, and the damage if one does not match.

A checksum has two halves. The lower one continues that of the event before. So one comparison at
the end covers all events and their order, which makes checking a long session cheap. The upper one
of the event and its time alone; where the lower ones do not match, it shows which are damaged.

When a file is closed, it gets a seal that says how many events it holds. Without it, the loss of
the last ones could not be noticed. What was written after the seal is in SQLite's write-ahead log.
SQLite leaves out the damaged end of that log without a word; `lost_writes` finds it.
"""

from __future__ import annotations

import json
import struct
from marshal import dumps
from typing import TYPE_CHECKING, Any, Final, cast
from zlib import adler32, crc32

from fast_agent.sessions.event import BLOCK, COMPACTED, END, LASTING, REWOUND, TURN, Row
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fast_agent.sessions.event import Logged

SEAL: Final = "seal"
"""The key of the seal among the facts of a session: the number and checksum of the last event."""

FACTS_SUM: Final = "sum"
"""The key of the checksum of the other facts."""

# Version 2 has not changed since Python 2.5, knows no references between values, and writes a list
# as its items one after another. A test holds a checksum made by it.
_MARSHAL_VERSION: Final = 2
_LIST_HEAD: Final = 5
_LOW: Final = 0xFFFFFFFF
_HIGH: Final = 0x7FFFFFFF
_MAX_NAMED: Final = 10
_PER_SECOND: Final = 1_000_000
_LAST_TIME: Final = 1e12

# Of SQLite's files: https://sqlite.org/fileformat.html and https://sqlite.org/walformat.html.
_PAGE_SIZE: Final = struct.Struct(">H")
_PAGE_SIZE_AT: Final = 16
_WAL_HEAD: Final = struct.Struct(">8I")
_WAL_SUMS: Final = struct.Struct(">2I")
_WAL_LITTLE_ENDIAN: Final = 0x82
_WAL_SALTS_AT: Final = 16
_FRAME_SALTS_AT: Final = _WAL_HEAD.size + 8
_SALTS: Final = struct.Struct(">2I")
_FRAME_HEAD: Final = struct.Struct(">6I")
_INDEX_HEAD: Final = struct.Struct("=IIIBBHI")
"""The head of the index in shared memory; its last number is that of the last valid frame."""


def summed(
    rows: Iterable[Row], at: float, number: int, before: int
) -> tuple[list[float | str | None], int, int, int]:
    """Yield the columns of events: number, time, fields and checksum, one after another.

    Args:
        rows: The events.
        at: When they happened, in seconds since the epoch.
        number: The number of the event before them; 0 where there is none.
        before: The checksum of that event.

    Returns:
        The values of all of them, the number of the last one, its checksum, and about how many
        bytes they take.
    """
    total, written, size = before & _LOW, before, 0
    values: list[float | str | None] = []
    # Every event of every turn passes here. Of a short text, `adler32` takes a third of the time of
    # `crc32`, and notices each changed byte as well.
    time = int(at * _PER_SECOND)
    for row in rows:
        number += 1
        data = dumps((number, *row), _MARSHAL_VERSION)
        total = adler32(data, total)
        written = ((crc32(data) ^ time) & _HIGH) << 32 | total
        values += (number, at, *row, written)
        size += len(data)
    return values, number, written, size


def chained_sum(rows: list[Logged], before: int) -> int:
    """Return the lower half of the checksum of the last of some events that follow each other."""
    return adler32(memoryview(dumps(rows, _MARSHAL_VERSION))[_LIST_HEAD:], before)


def is_chained(total: int, written: object) -> bool:
    """Whether the lower half of a checksum is `total`."""
    return isinstance(written, int) and written & _LOW == total


def is_whole(number: int, row: Row, at: float, written: object) -> bool:
    """Whether an event is as it was written, by the upper half of its checksum."""
    # A table that is damaged may hold anything.
    if not isinstance(written, int) or not isinstance(at, float) or not 0 <= at < _LAST_TIME:
        return False
    return written >> 32 == summed((row,), at, number - 1, 0)[2] >> 32


def facts_sum(facts: Mapping[str, str]) -> str:
    """Return the checksum of what is known of a session without its events."""
    kept = {key: value for key, value in facts.items() if key not in (SEAL, FACTS_SUM)}
    return str(crc32(json.dumps(kept, sort_keys=True).encode()))


@frozen
class Damage:
    """What is damaged in a session.

    Args:
        events: The numbers of the events that are damaged or missing, in order.
        count: How many events there should be.
    """

    events: tuple[int, ...]
    count: int

    def __str__(self) -> str:
        parts = list(_ranges(self.events))
        named = ", ".join(parts[:_MAX_NAMED])
        if len(parts) > _MAX_NAMED:
            named += ", …"
        one = len(self.events) == 1
        return (
            f"event{'' if one else 's'} {named} of {self.count:,} {'is' if one else 'are'} damaged"
        )


class Inspection:
    """A check of each event of a log; what cannot be read costs only itself.

    Args:
        fetch: Reads the event of a number: the fields of its row, its time and its checksum. May
            raise what a damaged table raises: `TypeError`, `ValueError`, or an error of `damages`.
        last: The number of the last event.
        has_sums: Whether its events have checksums; without them, what can be read counts as whole.
        damages: The errors of a database whose table is damaged.

    Attributes:
        whole: The events that are as they were written, by number, with their times.
        damage: Those that are not, and those that are missing.
    """

    def __init__(
        self,
        fetch: Callable[[int], Sequence[Any] | None],
        last: int,
        *,
        has_sums: bool = True,
        damages: type[Exception] = ValueError,
    ) -> None:
        self._fetch = fetch
        self._has_sums = has_sums
        self._damages = damages
        self.whole: dict[int, tuple[float, Row]] = {}
        self.damage = Damage(tuple(self._damaged(last)), last)

    def _damaged(self, last: int) -> Iterator[int]:
        for number in range(1, last + 1):
            try:
                found = self._fetch(number)
                if found is not None:
                    *fields, at, written = found
                    row = Row._make(fields)
                    if not self._has_sums or is_whole(number, row, at, written):
                        self.whole[number] = at, row
                        continue
            except (self._damages, TypeError, ValueError):
                pass  # it cannot be read, or is missing
            yield number


def last_number(numbers: Iterable[object]) -> int:
    """Return the number of the last event; 0 without any.

    Args:
        numbers: Those found in a table, which may be damaged and hold anything.
    """
    there = {number for number in numbers if isinstance(number, int)}
    # Numbers have no gaps, so one far above the count of events was never used.
    most = 2 * len(there) + 1000
    return max((number for number in there if 0 < number <= most), default=0)


def whole_turns(inspection: Inspection) -> tuple[list[tuple[float, Row]], int]:
    """Select what can continue: the events of complete turns, and those outside of turns.

    It is uncertain which turn a damaged event was a part of. So every turn that was under
    way when it was written is left out, with those it started.

    Args:
        inspection: The result of the file's inspection.

    Returns:
        The events with their times, in order, and how many turns were left out.
    """
    bad = _bad_turns(inspection)
    living_numbers = _not_rewound(inspection)
    kept: list[tuple[float, Row]] = []
    for number in living_numbers:
        at, row = inspection.whole[number]
        if row.kind == BLOCK:
            ids = [one for one in json.loads(row.data or "[]") if one not in bad]
            row = row._replace(data=json.dumps(ids))
        if row.kind == COMPACTED and inspection.damage.events:
            continue  # it counts the messages before it, and the number of missing ones is unknown
        if row.turn not in bad:
            kept.append((at, row))
    return kept, len(bad)


def _bad_turns(inspection: Inspection) -> set[str]:
    whole, damaged = inspection.whole, set(inspection.damage.events)
    began: set[str] = set()
    under_way: dict[str, None] = {}
    bad: set[str] = set()
    for number in range(1, inspection.damage.count + 1):
        if number in damaged:
            bad.update(under_way)
            continue
        _, row = whole[number]
        turn = row.turn
        if turn is None:
            continue
        if row.kind == TURN:
            began.add(turn)
            if row.parent is not None and not bad.isdisjoint(under_way):
                bad.add(turn)
            under_way[turn] = None
        elif turn not in began:
            bad.add(turn)
        if row.kind == END:
            under_way.pop(turn, None)
    return bad


def _not_rewound(inspection: Inspection) -> list[int]:
    gaps = [
        (row.number or 0, number)
        for number, (_, row) in sorted(inspection.whole.items())
        if row.kind == REWOUND
    ]
    return [
        number
        for number, (_, row) in sorted(inspection.whole.items())
        if row.kind != REWOUND
        and (row.kind in LASTING or not any(kept < number < end for kept, end in gaps))
    ]


def lost_writes(path: Path) -> int:
    """Count the writes at the end of a write-ahead log that SQLite leaves out as damaged.

    Args:
        path: The session's file, which this process has open and was asked something.
    """
    try:
        with path.open("rb") as file:
            (page_size,) = _PAGE_SIZE.unpack_from(file.read(_PAGE_SIZE_AT + 2), _PAGE_SIZE_AT)
        log = path.with_name(f"{path.name}-wal").read_bytes()
        index = path.with_name(f"{path.name}-shm").read_bytes()
    except (OSError, struct.error):
        return 0
    if len(log) < _WAL_HEAD.size + _FRAME_HEAD.size or len(index) < _INDEX_HEAD.size:
        return 0
    taken = cast("int", _INDEX_HEAD.unpack_from(index)[-1])
    # Frames of an older round of the log stay behind those of this one, with other salts.
    salts_at = _WAL_SALTS_AT if _is_wal_head(log) else _FRAME_SALTS_AT
    salts = _SALTS.unpack_from(log, salts_at)
    frame = _FRAME_HEAD.size + (page_size if page_size > 1 else 65_536)
    starts = range(_WAL_HEAD.size + taken * frame, len(log) - _FRAME_HEAD.size, frame)
    frames = [_FRAME_HEAD.unpack_from(log, start) for start in starts]
    return sum(1 for _, commit, *own, _, _ in frames if commit and tuple(own) == salts)


def _is_wal_head(log: bytes) -> bool:
    words = struct.unpack_from("<6I" if log[3] == _WAL_LITTLE_ENDIAN else ">6I", log)
    one = two = 0
    for index in range(0, len(words), 2):
        one = (one + words[index] + two) & _LOW
        two = (two + words[index + 1] + one) & _LOW
    return _WAL_SUMS.unpack_from(log, 24) == (one, two)


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Write numbers with runs as `3-7`."""
    first = last = None
    for number in numbers:
        if last is not None and number == last + 1:
            last = number
            continue
        if first is not None:
            yield f"{first}" if first == last else f"{first}-{last}"
        first = last = number
    if first is not None:
        yield f"{first}" if first == last else f"{first}-{last}"
