"""No key, header or interpolated value stands in anything a run says or writes down."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.cli.canaries import CARDS, COMMAND, ENVIRONMENT, MARK, Aviary, sings
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.canaries import Heard

    from fast_agent.text.json_value import JsonObject

SING = "***CALL_TOOL local__sing"
MESSAGES = {"plain.md": "***CALL_TOOL crash", "local.md": "***CALL_TOOL local__fail"}
META: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "canaries", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LOADED = ("plain", "local", "gone", "web", "dead", "linked")


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> Iterator[Aviary]:
    with Aviary(tmp_path) as world:
        yield world


def quiet(heard: Heard) -> Heard:
    """No canary is in what was said."""
    for text in (heard.out, heard.err):
        assert [line for line in text.splitlines() if sings(line)] == []
    return heard


def mcp_asks(meta: JsonObject) -> list[JsonObject]:
    """What a client of served agents asks."""
    asks: list[JsonObject] = [
        {"method": method, "params": {"_meta": meta}} for method in ("tools/list", "prompts/list")
    ]
    for name in LOADED:
        message = {**MESSAGES, "local.md": SING}.get(f"{name}.md", "hi")
        params: JsonObject = {"name": name, "arguments": {"message": message}, "_meta": meta}
        asks.append({"method": "tools/call", "params": params})
    asks.append({"method": "prompts/get", "params": {"name": "local_history", "_meta": meta}})
    return asks


def options() -> list[str]:
    return [word for name in LOADED for word in ("--card", f"cards/{name}.md")]


@pytest.mark.spec("TR-S1.1")
@pytest.mark.parametrize("card", CARDS)
def test_a_run(world: Aviary, card: str) -> None:
    command = ("go", "--card", f"cards/{card}", "-m", MESSAGES.get(card, "hi"))
    for output, log in (("human", "debug"), ("json", "")):
        heard = quiet(world.run(*command, "--format", output, log=log))
        assert heard.code == (0 if card in {"plain.md", "local.md"} else 1)
    assert world.written() == []


def test_the_canaries_do_sing_where_nobody_hides_them(world: Aviary) -> None:
    answer = world.run("go", "--card", "cards/local.md", "-m", SING)
    assert sings(answer.out)  # an answer is given as it is
    for form in (MARK, f"http://h/?q={MARK}", MARK.upper(), "eHgK" + "Y25yeTdmM2E5LW9m"):
        assert sings(f"... {form} ...")


@pytest.mark.spec("TR-S1.1")
def test_what_is_written_down(world: Aviary) -> None:
    for card in ("local.md", "plain.md", "openai.md"):
        command = ("go", "--card", f"cards/{card}", "-m", {"local.md": SING}.get(card, "hi"),
                   "--format", "json")  # fmt: skip
        quiet(world.run(*command, "--session"))
        quiet(world.run(*command, "--resume"))
        quiet(world.run(*command, "--record", f"{card}.jsonl"))
        assert (world.work / f"{card}.jsonl").exists()
    assert world.written() == []
    quiet(world.run("session", "list"))
    listed = quiet(world.run("session", "list", "--format", "json")).out
    ids = [line.split('"')[3] for line in listed.splitlines() if '"id"' in line]
    assert len(ids) == 3
    for number in ids:
        for command in (("show",), ("export",), ("export", "--format", "json")):
            quiet(world.run("session", command[0], number, *command[1:]))
    assert "<<secret>>" in (world.work / "local.md.jsonl").read_text()


@pytest.mark.spec("TR-S1.1")
@pytest.mark.parametrize(
    "command",
    [
        ("check", "cards"),
        ("check", "cards", "--format", "json"),
        ("check", "cards", "--format", "sarif"),
        ("graph", "cards/linked.md"),
        ("graph", "cards/linked.md", "--format", "json"),
        ("graph", "cards/wrong.md"),
        ("models", "list"),
        ("models", "list", "--format", "json"),
        ("go", "--card", "cards/linked.md", "--dump", "out"),
        ("go", "--card", "cards/keyed.md", "--dump-yaml", "out"),
        ("serve", "--card", "cards/dead.md", "--dump", "out"),
        ("trust", "--list"),
        ("trust", "cards"),
        ("test", "."),
        ("maker", "plan", "cards/wrong.md", "-m", "hi"),
        ("resources", "list"),
    ],
)
def test_commands_that_run_nothing(world: Aviary, command: tuple[str, ...]) -> None:
    for log in ("", "debug"):
        quiet(world.run(*command, log=log))
    assert world.written() == []


@pytest.mark.spec("TR-S1.1")
def test_servers_of_options(world: Aviary) -> None:
    address = f"http://me:{MARK}-pass@127.0.0.1:1/{MARK}-p1/mcp?api_key={MARK}-key"
    quiet(world.run("go", "--url", address, "-m", "hi"))
    program = f"{sys.executable} {world.work / 'server.py'} --api-key {MARK}-option1 leave"
    quiet(world.run("go", "--stdio", program, "-m", "hi", log="debug"))


@pytest.mark.spec("TR-S1.1")
def test_a_wrong_configuration(world: Aviary) -> None:
    for text in (
        f"openai: {{api_key: [{MARK}-listed1]}}",
        f"mcp: {{servers: {{x: {{url: 'ftp://{MARK}-scheme1', headers: {{A: 1}}}}}}}}",
        "mcp: {servers: {x: {url: 'ftp://${REGION}'}}}",
        "shell: {timeout_seconds: '${DB_PASS}'}",
        "default_model: ${DB_PASS}",
        f"mcp: {{servers: {{x: {{command: [a], env: {{A: {MARK}-env1}}}}}}}}",
    ):
        (world.work / "other.yaml").write_text(text)
        for command in (("go", "-m", "hi"), ("check", "cards/plain.md", "--format", "json")):
            quiet(world.run(*command, "--config-path", "other.yaml"))


@pytest.mark.spec("TR-S1.1")
def test_agents_that_are_served_over_stdio(world: Aviary) -> None:
    heard = world.talk(
        "serve", "--transport", "stdio", *options(), asks=mcp_asks(META), log="debug"
    )
    quiet(heard)
    assert heard.out.count('"isError":true') == 4
    assert "<<secret>>" in heard.out
    assert world.written() == []


@pytest.mark.spec("TR-S1.1")
def test_agents_that_are_served_over_http(world: Aviary) -> None:
    heard = quiet(world.served(*options(), asks=mcp_asks(META)))
    assert "<<secret>>" in heard.out
    assert world.written() == []


@pytest.mark.spec("TR-S1.1")
def test_agents_in_an_editor(world: Aviary) -> None:
    asks: list[JsonObject] = [
        {"method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}},
        {"method": "session/new", "params": {"cwd": str(world.work), "mcpServers": [
            {"name": "given", "command": sys.executable,
             "args": [str(world.work / "server.py"), "leave"],
             "env": [{"name": "APP_KEY", "value": f"{MARK}-of-the-editor"}]},
        ]}},
    ]  # fmt: skip
    for name in ("plain", "local"):
        asks.append({"method": "session/set_mode", "params": {"sessionId": "", "modeId": name}})
        message = {"plain": "***CALL_TOOL crash", "local": SING}[name]
        prompt = {"sessionId": "", "prompt": [{"type": "text", "text": message}]}
        asks.append({"method": "session/prompt", "params": prompt})
    heard = quiet(world.talk("acp", *options(), asks=asks, log="debug"))
    assert "session/update" in heard.out
    assert world.written() == []


@pytest.mark.spec("TR-S1.1")
def test_errors_of_a_program_in_python(world: Aviary) -> None:
    program = (
        "import asyncio\nfrom fast_agent import FastAgent\n"
        "async def main():\n    fast = FastAgent()\n    fast.load_agents('cards/{}.md')\n"
        "    async with fast.run() as app:\n        await app.send('hi')\n"
        "asyncio.run(main())\n"
    )
    for card in ("openai", "keyed", "anthropic", "web", "dead", "gone", "linked", "wrong"):
        done = subprocess.run(
            [COMMAND.with_name("python"), "-c", program.format(card)], cwd=world.work,
            env={**world.environ, "PATH": os.environ["PATH"]}, capture_output=True, text=True,
            timeout=PATIENCE,
        )  # fmt: skip
        assert "Traceback" in done.stderr
        assert [line for line in done.stderr.splitlines() if sings(line)] == [], card


def test_every_canary_is_in_the_environment_of_the_program(world: Aviary) -> None:
    assert all(sings(value) for value in ENVIRONMENT.values())
    assert set(ENVIRONMENT) <= set(world.environ)
