"""Sessions through a pooler that gives each statement whichever connection is free."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.patience import wait_until
from tests.postgres_server import PASSWORD, UNPRIVILEGED, USER, PostgresServer, why_not
from tests.processes import free_port
from tests.sessions.session_world import plain_turn, write

from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_POOLER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
pytestmark = pytest.mark.skipif(
    why_not() is not None or _POOLER is None,
    reason=f"not run: {why_not() or 'PgBouncer is not installed'}",
)


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[str]:
    """The address of a PgBouncer with two connections, one a transaction."""
    assert _POOLER is not None
    port = free_port()
    with PostgresServer() as server:
        users, settings = server.directory / "users", server.directory / "pooler.ini"
        users.write_text(f'"{USER}" "{PASSWORD}"\n')
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = plain\nauth_file = {users}\n"
            # As of a version that knows nothing of prepared statements.
            "pool_mode = transaction\ndefault_pool_size = 2\nserver_round_robin = 1\n"
        )
        with (tmp_path / "log").open("wb") as log:
            user = ["-u", UNPRIVILEGED] if os.geteuid() == 0 else []  # it refuses to run as root
            pooler = subprocess.Popen([_POOLER, *user, settings], cwd="/", stdout=log, stderr=log)
        try:
            wait_until(lambda: _listens(port))
            yield server.url_at(port)
        finally:
            pooler.kill()
            pooler.wait()


@pytest.mark.spec("SESSION-22")
def test_writers_that_share_connections_keep_what_each_wrote(pooled: str) -> None:
    stores = [SessionStore(pooled) for _ in range(3)]
    sessions = [store.create() for store in stores]
    for number in range(12):
        for store, session in zip(stores, sessions, strict=True):
            write(session, plain_turn(f"t{number}", f"{session.id} {number}", "ho"))
            store.list()
    for store, session in zip(stores[1:] + stores[:1], sessions, strict=True):
        session.close()
        _, state = store.read(session.id)
        assert [turn.turn_id for turn in state.turns] == [f"t{number}" for number in range(12)]
        assert state.turns[-1].messages()[0].text == f"{session.id} 11"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
