from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fast_agent.cards.agent_config import McpConnect
from fast_agent.config.settings import McpSettings, RootSettings, ServerSettings
from fast_agent.errors import ConfigError
from fast_agent.mcp.server import (
    DEFAULT_READ_TIMEOUT,
    HttpTarget,
    Root,
    ServerSpec,
    StdioTarget,
    derived_name,
    from_command_line,
    from_connect,
    from_settings,
    from_url,
    read_root,
    unique_name,
)

HERE = Path("/srv/cards")


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("uvx mcp-server-time --local-timezone UTC", "mcp-server-time"),
        ("npx -y @scope/server-files@1.2 /data", "server-files"),
        ("python3.12 tools/my_server.py", "my-server"),
        ("/usr/bin/python -m weather", "weather"),
        ("./serve.sh", "serve"),
        ("uvx", "uvx"),
        ("https://api.example.com/v1/mcp?key=x", "api-example-com-v1"),
        ("http://localhost:8000/mcp", "localhost"),
        ("a__b", "a-b"),
        ("'unclosed", "unclosed"),
        ("…", "server"),
    ],
)
def test_names_say_what_runs_not_what_launches_it(target: str, name: str) -> None:
    assert derived_name(target) == name


def test_names_are_made_unique() -> None:
    assert unique_name("a", ()) == "a"
    assert unique_name("a", ("a", "a-2")) == "a-3"


@pytest.mark.parametrize("name", ["a__b", "", "  ", "a\nb"])
def test_a_name_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the name of an MCP server"):
        ServerSpec(name=name, target=HttpTarget(url="http://x"))


def test_a_command_line_becomes_a_process() -> None:
    spec = from_command_line("./bin/serve 'two words' --flag", directory=HERE, taken=["serve"])
    assert spec.name == "serve-2"
    assert spec.target == StdioTarget(command="/srv/cards/bin/serve", args=("two words", "--flag"))
    bare = from_command_line("serve", directory=HERE).target
    assert bare == StdioTarget(command="serve")
    at_home = from_command_line("~/serve", directory=HERE).target
    assert isinstance(at_home, StdioTarget)
    assert at_home.command == str(Path.home() / "serve")


@pytest.mark.parametrize("line", ["", "   ", "serve 'open"])
def test_a_command_line_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(ConfigError, match="command"):
        from_command_line(line, directory=HERE)


def test_an_address_becomes_a_target() -> None:
    spec = from_url("https://api.example.com/mcp", headers={"A": "b"})
    assert spec.target == HttpTarget(url="https://api.example.com/mcp", headers={"A": "b"})


@pytest.mark.parametrize("url", ["ftp://x/y", "http://", "example.com", "http://[::1", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of an MCP server"):
        from_url(url)


def test_a_cards_own_servers_start_from_its_directory() -> None:
    process = from_connect(McpConnect(target="./serve --now", env={"K": "v"}), directory=HERE)
    assert process.name == "serve"
    assert process.target == StdioTarget(
        command="/srv/cards/serve", args=("--now",), env={"K": "v"}, cwd=HERE
    )
    web = from_connect(
        McpConnect(target="https://x.dev/mcp", name="x", headers={"A": "b"}), directory=HERE
    )
    assert (web.name, web.target) == ("x", HttpTarget(url="https://x.dev/mcp", headers={"A": "b"}))


def test_the_configuration_becomes_specs() -> None:
    files = ServerSettings(
        name="files",
        transport="stdio",
        command="serve",
        args=("--x",),
        env={"A": "b"},
        cwd=HERE,
        roots=(RootSettings(uri="/srv/space", name="space"), RootSettings(uri="file:///b")),
        sampling=False,
        sampling_model="haiku",
        sampling_limit=5,
        protocol="legacy",
        connect_timeout_seconds=3,
        list_timeout_seconds=4,
        call_timeout_seconds=500,
    )
    web = ServerSettings(name="web", transport="http", url="https://x.dev", read_timeout_seconds=7)
    off = ServerSettings(name="off", transport="http", url="nonsense", enabled=False)
    first, second = from_settings(McpSettings(servers={"files": files, "web": web, "off": off}))
    assert first == ServerSpec(
        name="files",
        target=StdioTarget(command="serve", args=("--x",), env={"A": "b"}, cwd=HERE),
        roots=(Root(uri="file:///srv/space", name="space"), Root(uri="file:///b")),
        sampling=False,
        sampling_model="haiku",
        sampling_limit=5,
        protocol="legacy",
        connect_timeout_seconds=3,
        list_timeout_seconds=4,
        call_timeout_seconds=500,
        read_timeout_seconds=DEFAULT_READ_TIMEOUT,
        declared="mcp.servers.files",
    )
    assert (second.target, second.read_timeout_seconds) == (HttpTarget(url="https://x.dev"), 7)


def test_roots_are_files() -> None:
    assert read_root("a b", directory=HERE).uri == "file:///srv/cards/a%20b"
    with pytest.raises(ConfigError, match="cannot be a root"):
        read_root("https://x.dev", directory=HERE)


def test_what_may_hold_a_secret_is_not_shown() -> None:
    process = StdioTarget(command=sys.executable, args=("--key", "s3cret"), env={"K": "s3cret"})
    web = HttpTarget(url="https://u:s3cret@x.dev/mcp?k=s3cret#s3cret", headers={"K": "s3cret"})
    for target in (process, web):
        assert "s3cret" not in f"{target} {target!r} {ServerSpec(name='s', target=target)!r}"
    assert str(web) == "https://x.dev/mcp"
