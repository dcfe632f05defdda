"""Time the statements of durable runs alone: what SQLite takes for them without a program."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from pathlib import Path

from fast_agent.engine.run_rows import NewRun
from fast_agent.engine.run_store import RunStore

STEP = (
    "INSERT INTO step SELECT ?,?,?,?,?,?,?,?,?,?,?,?,1 WHERE (SELECT fence FROM run WHERE id=?)=?"
    " ON CONFLICT DO UPDATE SET state=excluded.state, gave=excluded.gave, at=excluded.at"
)
ASKED = '{"agent":"a","messages":"0123456789","model":"m","system":"0123456789","tools":"0123"}'
GAVE = '{"message":{"content":[{"text":"42","type":"text"}],"role":"assistant"},"usage":{}}'


class Statements:
    """The statements of runs in a fresh database with the tables of runs.

    Args:
        path: The database.
        runs: How many runs are queued.
    """

    def __init__(self, path: Path, runs: int) -> None:
        for one in path.parent.glob(f"{path.name}*"):
            one.unlink()
        store = RunStore(path, "b")
        store.queue(NewRun(n, str(n), "a", '"hello"') for n in range(runs))
        store.close()
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._parts = 0

    def take(self) -> str:
        """Take a run; returns its id."""
        (run_id,) = self._connection.execute(
            "UPDATE run SET state='running', fence=fence+1, began=? WHERE id=(SELECT id FROM run"
            " WHERE batch='b' AND state='queued' ORDER BY item LIMIT 1) RETURNING id",
            (time.time(),),
        ).fetchone()
        return run_id

    def part(self) -> None:
        """Keep a piece of a question."""
        self._parts += 1
        digest = f"{hash(str(self._parts)):x}"
        self._connection.execute("INSERT OR IGNORE INTO part VALUES(?,?)", (digest, ASKED))

    def step(self, run_id: str, number: int) -> None:
        """Write that a step began, and what it gave."""
        self.write(run_id, number, 0, None)
        self.write(run_id, number, 1, GAVE)

    def write(self, run_id: str, number: int, state: int, gave: str | None) -> None:
        """Write a step in a state."""
        now = time.time()
        values = (run_id, "t", "tool", "n", number, ASKED, state, gave, None, 1, now, now)
        self._connection.execute(STEP, (*values, run_id, 1))

    def end(self, run_id: str) -> None:
        """Write how a run ended."""
        self._connection.execute(
            "UPDATE run SET state='done', output='42', ended=? WHERE id=? AND fence=1",
            (time.time(), run_id),
        )


def main(work: Path, count: int) -> dict[str, float]:
    """Measure the statements of a step, and of a run with three steps, a turn and a piece."""
    bare = Statements(work / "bare.sqlite", 1)
    run_id = bare.take()
    begun = time.process_time()
    for number in range(count):
        bare.step(run_id, number)
    found = {"step": (time.process_time() - begun) / count}
    runs = max(count // 5, 100)
    bare = Statements(work / "bare.sqlite", runs)
    begun = time.process_time()
    for _ in range(runs):
        run_id = bare.take()
        bare.part()
        bare.write(run_id, 3, 1, "1")  # that its turn began
        for number in range(3):
            bare.step(run_id, number)
        bare.end(run_id)
    found["run"] = (time.process_time() - begun) / runs
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
