"""Limits that processes share through a real PostgreSQL: what one sends, the others wait for."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, LiteralString

import anyio
import pytest
from tests.models.conftest import OpenAIWire as Wired
from tests.models.conftest import StartWire
from tests.models.test_rate_limits import Clock
from tests.postgres_server import PostgresServer, why_not

from fast_agent.config.settings import ModelLimits, SessionSettings, Settings, TemporalSettings
from fast_agent.engine.part_store import open_parts
from fast_agent.errors import ConfigError
from fast_agent.models.rate_limits import SharedUse, shared_use
from fast_agent.sessions.postgres.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.sessions.postgres.database import Values

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"not run: {why_not()}")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running


class Counted(Database):
    """A database that counts what it is asked."""

    asked = 0

    def query(self, statement: LiteralString, values: Values = ()) -> list[Any]:
        self.asked += 1
        return super().query(statement, values)


def age(database: Database, name: str, seconds: int) -> None:
    """Let what was sent of an entry be so many seconds older."""
    database.query(
        "UPDATE fast_agent_limit SET seconds = coalesce((SELECT jsonb_object_agg("
        "(key::bigint - %(old)s)::text, value) FROM jsonb_each(seconds)), '{}')"
        " WHERE name = %(name)s",
        {"old": seconds, "name": name},
    )


def sent(database: Database, name: str) -> tuple[float, float]:
    """Return the requests and tokens that are counted of an entry."""
    ((requests, tokens),) = database.query(
        "SELECT coalesce(sum((value->>0)::float8), 0), coalesce(sum((value->>1)::float8), 0)"
        " FROM fast_agent_limit, jsonb_each(seconds) WHERE name = %(name)s",
        {"name": name},
    )
    return requests, tokens


async def taken(use: SharedUse, waiting: int = 0) -> Any:
    """Take a request that may be sent at once."""
    found = await use.take(waiting)
    assert not isinstance(found, float)
    return found


async def take_all(use: SharedUse, most: int = 1000) -> tuple[int, float]:
    """Take until one has to wait; returns how many were taken, and the wait."""
    for count in range(most):
        wait = await use.take(0)
        if isinstance(wait, float):
            return count, wait
    return most, 0.0


@pytest.mark.anyio
@pytest.mark.spec("LIMITS-1")
async def test_no_minute_has_more_requests_than_allowed_over_all(server: PostgresServer) -> None:
    database = Database(server.url)
    limits = ModelLimits(requests_per_minute=10)
    uses = [SharedUse("few", limits, Database(server.url)) for _ in range(3)]
    counts = [await take_all(use) for use in uses]
    assert sum(count for count, _ in counts) == 10
    assert all(wait <= 61.5 for _, wait in counts)
    assert counts[-1][1] > 50
    age(database, "few", 59)
    assert (await take_all(uses[0]))[0] == 0
    age(database, "few", 3)
    assert (await take_all(uses[0]))[0] == 10


@pytest.mark.anyio
@pytest.mark.spec("LIMITS-1")
async def test_no_minute_has_more_tokens_than_allowed_over_all(server: PostgresServer) -> None:
    limits = ModelLimits(tokens_per_minute=1000)
    first, second = (SharedUse("tokens", limits, Database(server.url)) for _ in range(2))
    await first.record_usage(await taken(first), 300)
    first._block_end = 0.0  # the second of its block is over
    assert (await take_all(first))[0] == 2  # 300 and twice as many as expected
    # It does not know yet how large its requests are.
    await second.record_usage(await taken(second), 400)
    second._block_end = 0.0
    assert (await take_all(second))[0] == 0
    assert sent(Database(server.url), "tokens") == (4, 1300)


@pytest.mark.anyio
async def test_a_request_larger_than_the_limit_waits_for_an_empty_minute(
    server: PostgresServer,
) -> None:
    database = Database(server.url)
    use = SharedUse("large", ModelLimits(tokens_per_minute=50), database)
    for _ in range(3):
        await use.record_usage(await taken(use), 100)
        use._block_end = 0.0
        assert (await take_all(use))[0] == 0
        age(database, "large", 62)


@pytest.mark.anyio
@pytest.mark.spec("LIMITS-2")
async def test_the_database_is_asked_about_once_a_second(server: PostgresServer) -> None:
    database, clock = Counted(server.url), Clock()
    use = SharedUse("many", ModelLimits(requests_per_minute=100_000), database, clock.now)
    for second in range(10):
        before = database.asked
        for _ in range(200):
            await taken(use)
            clock.time += 0.005
        assert database.asked - before <= (11 if second == 0 else 3)
    clock.time += 5
    await taken(use)
    assert sent(database, "many")[0] == 2001  # what was reserved and not sent is given back


@pytest.mark.anyio
async def test_requests_that_wait_together_are_reserved_together(server: PostgresServer) -> None:
    database = Counted(server.url)
    use = SharedUse("together", ModelLimits(requests_per_minute=100), database)
    for waiting in range(50, 0, -1):
        await taken(use, waiting - 1)
    assert database.asked == 2  # the row, and the requests


@pytest.mark.spec("LIMITS-1")
def test_processes_at_once_never_get_more_than_there_is(server: PostgresServer) -> None:
    rng = random.Random(3)
    limits = ModelLimits(requests_per_minute=500, tokens_per_minute=10_000_000)
    uses = [SharedUse("race", limits, Database(server.url)) for _ in range(8)]
    wants = [[rng.randrange(1, 9) for _ in range(60)] for _ in uses]

    def hurry(use: SharedUse, wanted: list[int]) -> float:
        total = 0.0
        for number in wanted:
            use._left = 0  # all are sent
            anyio.run(use._reserve, number)
            total += use._left
        return total

    with ThreadPoolExecutor(len(uses)) as threads:
        totals = list(threads.map(hurry, uses, wants))
    assert sum(totals) == 500
    assert sent(Database(server.url), "race")[0] == 500


@pytest.mark.anyio
@pytest.mark.spec("LIMITS-1")
async def test_answers_that_arrive_while_others_are_asked_lose_no_count(
    server: PostgresServer,
) -> None:
    rng = random.Random(11)
    limits = ModelLimits(requests_per_minute=10_000, tokens_per_minute=10_000_000)
    use = SharedUse("busy", limits, Database(server.url))
    line = anyio.Lock()
    spent = 0

    async def ask() -> None:
        nonlocal spent
        async with line:
            one = await taken(use, line.statistics().tasks_waiting)
        await anyio.sleep(rng.uniform(0, 0.02))
        use._block_end = 0.0  # as if its second were over
        tokens = rng.randrange(1, 1000)
        spent += tokens
        await use.record_usage(one, tokens)

    for _ in range(8):
        async with anyio.create_task_group() as tasks:
            for _ in range(25):
                tasks.start_soon(ask)
    use._block_end = 0.0
    await use._reserve(0)  # what is left is given back
    assert sent(Database(server.url), "busy") == (200, spent)


@pytest.mark.anyio
@pytest.mark.spec("LIMITS-3")
async def test_without_the_database_each_process_keeps_to_its_own(
    server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    database = Database(f"{server.url.rsplit(':', 1)[0]}:9/postgres")
    use = SharedUse("away", ModelLimits(requests_per_minute=3), database, clock.now)
    assert await take_all(use) == (3, 60)
    assert "limits of `away` hold for each process" in caplog.text
    assert "s3cret" not in caplog.text
    use._database = Database(server.url)
    clock.time += 11
    assert (await take_all(use))[0] == 3


PROGRAM = """
import sys
import anyio
from fast_agent.config.settings import ModelLimits, ProviderSettings, SessionSettings, Settings
from fast_agent.messages.message import Message
from fast_agent.models.create import ModelFactory
from fast_agent.models.model import ModelRequest

async def main():
    settings = Settings(
        model_limits={"lab": ModelLimits(requests_per_minute=6)},
        endpoints={"lab": ProviderSettings(base_url=sys.argv[1])},
        sessions=SessionSettings(url=sys.argv[2]),
    )
    model = ModelFactory(settings, {}).create("lab.x")
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(model.request, ModelRequest("", [Message.user("hello")]))

anyio.run(main)
"""


@pytest.mark.spec("LIMITS-1")
def test_two_processes_share_the_limits_of_an_endpoint(
    server: PostgresServer, start_wire: StartWire
) -> None:
    wire = start_wire(*[Wired.answer(content="hi")] * 12)
    arguments = [sys.executable, "-c", PROGRAM, wire.url, server.url]
    processes = [subprocess.Popen(arguments) for _ in range(2)]
    try:
        end = time.monotonic() + 60
        while len(wire.seen) < 6:
            assert time.monotonic() < end
            time.sleep(0.05)
        kept = Database(server.url)
        time.sleep(2)  # time to send more, if the limit were that of a process
        assert sent(kept, "lab")[0] == 6
        assert len(wire.seen) == 6
        age(kept, "lab", 62)  # those who wait look again in a minute; new ones at once
        fresh = subprocess.Popen(arguments)
        processes.append(fresh)
        while len(wire.seen) < 12:
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        for process in processes:
            process.kill()
            process.wait()


ELSEWHERE = "postgres://host/sessions?host=elsewhere"


@pytest.mark.parametrize(
    "settings",
    [
        Settings(sessions=SessionSettings(url=ELSEWHERE)),
        Settings(temporal=TemporalSettings(parts=ELSEWHERE)),
    ],
)
def test_an_address_that_leads_elsewhere_than_it_shows_is_refused(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="may not set `host`"):
        shared_use("lab", ModelLimits(requests_per_minute=1), settings)
    with pytest.raises(ConfigError, match=r"`temporal\.parts` may not set `host`"):
        open_parts(ELSEWHERE)


def test_which_database_is_shared() -> None:
    limits = ModelLimits(requests_per_minute=1)
    url = "postgres://host/sessions"
    parts = Settings(temporal=TemporalSettings(parts=url))
    assert shared_use("lab", limits, Settings()) is None
    assert shared_use("lab", limits, Settings(temporal=TemporalSettings(parts="/parts"))) is None
    assert shared_use("lab", limits, parts) is not None
    assert shared_use("lab", limits, Settings(sessions=SessionSettings(url=url))) is not None
    assert shared_use("lab", ModelLimits(in_flight=1), parts) is None
