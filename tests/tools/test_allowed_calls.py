"""Calls that `--allow` permits."""

from __future__ import annotations

import pytest

from fast_agent.errors import ConfigError
from fast_agent.messages.message import ToolCall
from fast_agent.tools.allowed_calls import AllowedCalls


def permits(pattern: str, tool: str, **arguments: str) -> bool:
    return AllowedCalls.read([pattern]).permits(ToolCall("c", tool, arguments))


@pytest.mark.spec("T-J1.2")
@pytest.mark.parametrize(
    ("pattern", "command", "permitted"),
    [
        ("execute", "rm x; ls", True),
        ("execute(*)", "rm x; ls", True),
        ("exec*", "ls", True),
        ("execute(git *)", "git log", True),
        ("execute(git:*)", "git", True),
        ("execute(git *)", "gitk", False),
        ("execute(git *)", "git log; rm x", False),
        ("execute(git *)", "git $(rm x)", False),
        ("execute(git *)", "git log\nrm x", False),
        ("execute(git status)", "git status", True),
        ("execute(git status)", "git status -v", False),
        ("read_file", "git status", False),
    ],
)
def test_commands(pattern: str, command: str, *, permitted: bool) -> None:
    assert permits(pattern, "execute", command=command) is permitted


def test_sites_of_pages() -> None:
    allowed = "fetch(http://localhost:8080)"
    assert permits(allowed, "fetch", url="http://localhost:8080/a?b")
    assert not permits(allowed, "fetch", url="http://localhost:8081/")
    assert not permits(allowed, "fetch", url="http://localhost:8080@10.0.0.1/")
    assert not permits(allowed, "fetch")
    assert not permits(allowed, "post", url="http://localhost:8080/")


def test_what_later_runs_load_is_never_permitted() -> None:
    for pattern in ("*", "create_*"):
        assert not permits(pattern, "create_agent_card")
    assert permits("*", "add")
    assert not AllowedCalls.read(()).permits(ToolCall("c", "add", {}))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "not a pattern"),
        ("execute(git *", "not a pattern"),
        ("git log", "not a pattern"),
        ("execute(git* x)", "must come last, after a space"),
        ("execute(git*)", "must come last, after a space"),
        ("execute()", "not a command"),
        ("write_file(docs/*)", "only `execute` and `fetch`"),
        ("fetch(localhost)", "not the address of a site"),
        ("fetch(file:///etc)", "not the address of a site"),
        ("create_agent_card", "later runs load"),
    ],
)
def test_bad_patterns_name_the_remedy(pattern: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        AllowedCalls.read([pattern])
    assert raised.value.hint
