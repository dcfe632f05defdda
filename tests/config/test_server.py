from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from fast_agent.diagnostics.diagnostic import Diagnostic

if TYPE_CHECKING:
    from tests.config.conftest import Place

At = Callable[[Diagnostic, str], str]


def test_the_transport_is_inferred_or_given(place: Place) -> None:
    place.write(
        """\
mcp:
  servers:
    a: {command: uvx, args: [mcp-server-time]}
    b: {url: "https://example.org/mcp", headers: {Authorization: x}}
    c: {transport: stdio, command: x}
"""
    )
    servers = place.load().mcp.servers
    assert {name: one.transport for name, one in servers.items()} == {
        "a": "stdio",
        "b": "http",
        "c": "stdio",
    }
    assert list(servers) == ["a", "b", "c"]
    assert servers["a"].name == "a"
    assert dict(servers["b"].headers) == {"Authorization": "x"}


def test_programs_and_directories_start_at_the_file_but_bare_names_stay(place: Place) -> None:
    place.write(
        """\
mcp:
  servers:
    bare: {command: python, cwd: work}
    near: {command: ./run.sh, roots: [., "file:///x", {uri: sub, name: Sub}]}
    abs: {command: /bin/true, cwd: /tmp}
""",
        "../fastagent.config.yaml",
    )
    servers = place.load().mcp.servers
    top = place.cwd.parent
    assert servers["bare"].command == "python"
    assert servers["bare"].cwd == top / "work"
    assert servers["near"].command == str(top / "run.sh")
    assert [(root.uri, root.name) for root in servers["near"].roots] == [
        (str(top), None),
        ("file:///x", None),
        (str(top / "sub"), "Sub"),
    ]
    assert servers["abs"].command == "/bin/true"


@pytest.mark.parametrize(
    ("value", "allowed", "model", "limit"),
    [
        ("true", True, None, None),
        ("false", False, None, None),
        ("{model: haiku}", True, "haiku", None),
        ("{max_answers: 3}", True, None, 3),
        ("{model: haiku, max_answers: 3}", True, "haiku", 3),
    ],
)
def test_sampling(
    place: Place, value: str, allowed: bool, model: str | None, limit: int | None
) -> None:
    place.write(f"mcp: {{servers: {{t: {{command: x, sampling: {value}}}}}}}")
    server = place.load().mcp.servers["t"]
    assert (server.sampling, server.sampling_model) == (allowed, model)
    assert server.sampling_limit == limit


@pytest.mark.parametrize(
    ("value", "allowed"),
    [("true", True), ("false", False), ("{mode: forms}", True), ("{mode: none}", False)],
)
def test_elicitation(place: Place, value: str, allowed: bool) -> None:
    place.write(f"mcp: {{servers: {{t: {{command: x, elicitation: {value}}}}}}}")
    assert place.load().mcp.servers["t"].elicitation is allowed


@pytest.mark.parametrize(
    ("server", "code", "pointed", "expected"),
    [
        ("{}", "FA306", "t", "neither `command` nor `url`"),
        ("{command: x, url: http://a/}", "FA306", "t", "both `command` and `url`"),
        ("{command: x, transport: http}", "FA306", "http", "its transport is `stdio`"),
        ("{url: http://a/, args: [b]}", "FA306", "args", "`args` does not apply"),
        ("{command: x, headers: {a: b}}", "FA306", "headers", "`headers` does not apply"),
        ("{url: ftp://a/}", "FA305", "ftp://a/", "not an `http` or `https` address"),
        ("{url: 'http://'}", "FA305", "'http://'", "not an `http` or `https` address"),
        ("{command: x, transport: sse}", "FA306", "sse", "its transport is `stdio`"),
        ("{url: http://a/, transport: tcp}", "FA305", "tcp", "or `sse`"),
        ("{command: x, roots: [{name: n}]}", "FA305", "{name: n}", "needs `uri`"),
    ],
)
def test_keys_that_do_not_go_together(
    place: Place, at: At, server: str, code: str, pointed: str, expected: str
) -> None:
    text = f"mcp:\n  servers:\n    t: {server}\n"
    problem = place.problem(text)
    assert problem.code == code
    assert expected in problem.message
    assert at(problem, text) == pointed


def test_a_server_without_anything_is_placed(place: Place) -> None:
    problem = place.problem("mcp:\n  servers:\n    t:\n")
    assert problem.code == "FA304"
    assert problem.message == "`mcp.servers.t` must be a mapping of its fields, not empty (null)"


def test_a_name_with_the_separator_is_refused(place: Place, at: At) -> None:
    text = "mcp: {servers: {my__time: {command: x}}}"
    problem = place.problem(text)
    assert problem.code == "FA305"
    assert at(problem, text) == "my__time"


def test_a_server_can_be_put_together_from_files_and_variables(place: Place) -> None:
    place.write("mcp: {servers: {t: {args: [a]}}}")
    place.write("mcp: {servers: {t: {env: {TOKEN: s}}}}", "fastagent.secrets.yaml")
    place.environ["MCP__SERVERS__T__COMMAND"] = "run"
    server = place.load().mcp.servers["t"]
    assert (server.command, server.args, dict(server.env)) == ("run", ("a",), {"TOKEN": "s"})
