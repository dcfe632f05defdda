from __future__ import annotations

import json
import random
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from anyio.lowlevel import checkpoint
from tests.recording.replay_world import Page, program, veil, write_world

from fast_agent.app import FastAgent
from fast_agent.cards.agent_config import AgentConfig, McpConnect
from fast_agent.cards.card import Card
from fast_agent.config.settings import ProviderSettings, Settings
from fast_agent.errors import FastAgentError, RunError
from fast_agent.recording.cassette import Recorder, read_cassette
from fast_agent.recording.replayer import Replayer
from fast_agent.runtime.known_secrets import known_secrets
from fast_agent.steps.parts import StepRedactor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from fast_agent.agents.events import Event
    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.steps.steps import Steps

pytestmark = pytest.mark.anyio

REPLAYS = 12


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> Iterator[Path]:
    """Write a world whose page is gone when the test replays it."""
    with Page() as page:
        write_world(tmp_path, page.address)
        yield tmp_path


async def _run(
    directory: Path, tape: Steps, heard: list[Event] | None = None
) -> tuple[TurnResult, ...]:
    listener = None if heard is None else heard.append
    async with program(directory).run(steps=tape, listener=listener) as app:
        boss = await app["boss"].generate("go")
        team = await app["team"].generate("hello")
        again = await app["boss"].generate("and again")
        usage = app.usage
    if tape.replays:
        tape.check()
    assert usage.requests == 13
    return boss, team, again


async def _recorded(world: Path) -> tuple[Path, tuple[TurnResult, ...], list[Event]]:
    path = world / "run.cassette"
    tape = Recorder(path, veil(program(world)))
    heard: list[Event] = []
    results = await _run(world, tape, heard)
    tape.close()
    return path, results, heard


def _shuffler(seed: int) -> Callable[[], Awaitable[None]]:
    chance = random.Random(seed)

    async def pause() -> None:
        for _ in range(chance.randrange(5)):
            await checkpoint()

    return pause


class _Watch:
    """Counts sockets and programs opened while it is on; hooks of the interpreter stay for ever."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        if self.on and event in {"socket.connect", "socket.getaddrinfo", "subprocess.Popen"}:
            self.seen.append(f"{event} {args}")


@pytest.mark.spec("REPLAY-1", "REPLAY-2", "REPLAY-3")
async def test_a_run_is_the_same_in_every_replay_whatever_the_order_of_its_tasks(
    world: Path,
) -> None:
    path, results, heard = await _recorded(world)
    cassette = read_cassette(path)
    watch = _Watch()
    watch.on = True
    orders: set[tuple[str, ...]] = set()
    try:
        for seed in range(REPLAYS):
            tape = Replayer(cassette, veil(program(world)), pause=_shuffler(seed))
            events: list[Event] = []
            assert await _run(world, tape, events) == results
            tape.check()
            assert tape.left() == ()
            assert sorted(map(repr, events)) == sorted(map(repr, heard))
            orders.add(tuple(map(repr, events)))
    finally:
        watch.on = False
    assert watch.seen == []
    assert len(orders) > REPLAYS // 2


@pytest.mark.spec("REPLAY-4")
async def test_a_request_that_differs_is_refused_with_the_difference(world: Path) -> None:
    path, _, _ = await _recorded(world)
    card = world / "cards/kid.md"
    card.write_text(card.read_text().replace("You draw.", "You draw\nslowly."))
    tape = Replayer(read_cassette(path), veil(program(world)))
    with pytest.raises(RunError) as caught:
        await _run(world, tape)
    with pytest.raises(RunError) as drift:
        tape.check()
    assert "model request 1 of a turn of agent `" in drift.value.message
    assert (
        "\n-    description: You draw. {{env}}\n+    description: You draw slowly. {{env}}\n"
        in (drift.value.message)
    )
    assert caught.value is drift.value
    assert drift.value.hint == "undo the change, or record the run again"


@pytest.mark.spec("REPLAY-4")
async def test_another_message_is_shown_against_the_recorded_one(world: Path) -> None:
    path, _, _ = await _recorded(world)
    tape = Replayer(read_cassette(path), veil(program(world)))
    async with program(world).run(steps=tape) as app:
        with pytest.raises(
            RunError, match=r"(?s)starts with another message.*\n-    text: go\n\+    text: go on"
        ) as caught:
            await app["boss"].generate("go on")
    assert caught.value is tape.drift


@pytest.mark.spec("REPLAY-5")
async def test_what_is_not_asked_for_is_reported(world: Path) -> None:
    path, _, _ = await _recorded(world)
    tape = Replayer(read_cassette(path), veil(program(world)))
    async with program(world).run(steps=tape) as app:
        await app["boss"].generate("go")
    tape.check()
    left = tape.left()
    assert {key.kind for key in left} == {"model", "read"}
    assert sum(key.kind == "model" for key in left) == 5


@pytest.mark.spec("REPLAY-6")
async def test_no_secret_and_no_path_of_this_machine_is_written(world: Path) -> None:
    path, _, _ = await _recorded(world)
    text = path.read_text()
    assert "sk-very-secret-key" not in text
    assert "token-of-tiny-server" not in text
    assert str(world) not in text
    assert "<<workspace>>" in text


async def test_a_recording_replays_in_another_directory(
    world: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path, results, _ = await _recorded(world)
    other = tmp_path_factory.mktemp("elsewhere")
    address = (world / "cards/boss.md").read_text().split("{{url:")[1].split("}}")[0]
    write_world(other, address)
    replayed = await _run(other, Replayer(read_cassette(path), veil(program(other))))
    assert [one.text for one in replayed] == [one.text for one in results]


@pytest.mark.spec("REPLAY-7")
async def test_a_torn_recording_is_read_up_to_its_last_whole_line(world: Path) -> None:
    path, results, _ = await _recorded(world)
    refused = 0
    lines = path.read_bytes().splitlines(keepends=True)
    for count in random.Random(3).sample(range(2, len(lines)), 12):
        path.write_bytes(b"".join(lines[:count]) + lines[count][:-3])
        cassette = read_cassette(path)
        assert not cassette.complete
        tape = Replayer(cassette, veil(program(world)))
        with suppress(RunError):
            assert await _run(world, tape) == results
        if tape.drift is not None:
            assert "incomplete" in (tape.drift.hint or "")
            refused += 1
    assert refused


async def test_a_failed_request_fails_again(tmp_path: Path) -> None:
    (tmp_path / "steps.script").write_text(
        "steps:\n  - fail: {message: too busy, hint: wait a little}\n  - text: at last\n"
    )
    (tmp_path / "one.md").write_text(
        "---\ntype: agent\nmodel: scripted?file=steps.script\n---\nHelp.\n"
    )

    async def ask(tape: Steps) -> list[str]:
        said: list[str] = []
        fast = FastAgent(cwd=tmp_path, environ={}, ignore_config=True)
        fast.load_agents("one.md")
        async with fast.run(steps=tape) as app:
            for _ in range(2):
                try:
                    said.append(await app["one"].send("hello"))
                except FastAgentError as error:
                    said.append(f"{type(error).__name__} {error} {error.hint}")
        return said

    path = tmp_path / "run.cassette"
    recorder = Recorder(path)
    recorded = await ask(recorder)
    recorder.close()
    assert recorded == ["ModelError too busy wait a little", "at last"]
    assert await ask(Replayer(read_cassette(path))) == recorded


async def test_the_head_and_every_line_are_json(world: Path) -> None:
    path, _, _ = await _recorded(world)
    values = [json.loads(line) for line in path.read_text().splitlines()]
    assert values[0]["cassette"] == 2
    assert values[-1] == {"end": True}
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.spec("REPLAY-6")
def test_what_is_hidden_are_keys_and_what_is_named_a_secret() -> None:
    config = AgentConfig(
        name="a",
        api_key="key-of-the-card",
        mcp_connect=(
            McpConnect(
                target="https://example.test",
                headers={
                    "Authorization": "Bearer header-of-the-card",
                    "Accept": "application/json",
                },
            ),
            McpConnect(
                target="uvx time", env={"TIME_TOKEN": "token-of-the-card", "MODE": "verbose!"}
            ),
        ),
    )
    settings = Settings(providers={"openai": ProviderSettings(api_key="key-of-the-settings")})
    environ = {"ANTHROPIC_API_KEY": "key-of-the-environment", "PAGER": "less --raw"}
    hidden = StepRedactor(known_secrets(settings, environ, [Card(config)]), "/")
    said = "key-of-the-card header-of-the-card token-of-the-card key-of-the-settings"
    assert hidden.redact(f"{said} key-of-the-environment") == " ".join(["<<secret>>"] * 5)
    plain = "application/json verbose! less --raw /"
    assert hidden.redact(plain) == plain


def test_redaction_hides_the_longest_secret_first_and_whole_paths_only() -> None:
    hidden = StepRedactor(["secret-one", "secret-one-longer", "short"], "/home/me/work")
    assert hidden.redact("a secret-one-longer b secret-one short") == (
        "a <<secret>> b <<secret>> short"
    )
    assert hidden.redact("/home/me/work/a /home/me/work. /home/me/works /home/me/work.old") == (
        "<<workspace>>/a <<workspace>>. /home/me/works /home/me/work.old"
    )
    assert hidden.restored(["<<workspace>>/a"]) == ["/home/me/work/a"]
