"""`fast-agent auth`, with a loopback authorization server and a user who follows the address."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
from tests.mcp.authorized import Server

from fast_agent.trust.policy import STARTED_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Run


@pytest.fixture(name="server")
def _server() -> Iterator[Server]:
    with Server() as server:
        yield server


def declare(project: Path, server: Server, more: str = "") -> None:
    (project / "fastagent.config.yaml").write_text(
        f"mcp:\n  servers:\n    docs: {{url: '{server.url}', protocol: legacy{more}}}\n"
    )


def login(*arguments: str) -> tuple[int, str, str]:
    """Log in as a user does who opens the address that is printed."""
    environ = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    program = str(Path(sys.executable).with_name("fast-agent"))
    command = [program, "auth", "login", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stderr is not None
        lines: list[str] = []
        pages: list[threading.Thread] = []
        for line in process.stderr:
            lines.append(line)
            if re.match(r"  http://127.0.0.1:\d+/authorize\?", line):
                pages.append(threading.Thread(target=urlopen, args=(line.strip(),)))
                pages[-1].start()
        out = process.stdout.read() if process.stdout is not None else ""
        for page in pages:
            page.join()
    return process.returncode, out, "".join(lines)


@pytest.mark.spec("OAUTH-1")
def test_login_use_list_and_logout(project: Path, server: Server, run: Run) -> None:
    declare(project, server)
    assert run("auth").out == "this program is not authorized at any server\n"
    card = project / "ann.md"
    card.write_text("---\ntype: agent\nmodel: passthrough\nservers: [docs]\n---\nBe brief.\n")
    done = run("go", "--card", card, "--message", "hi")
    assert done.code == 1
    assert "server `docs` requires authorization" in done.err
    assert "`fast-agent auth login docs`" in done.err

    code, out, err = login("docs", "--store", "file")
    assert code == 0, err
    home = project.parent / "home"
    assert out == (
        f"authorized at `docs` by {server.root} for read write; "
        f"kept in `{home}/authorizations.json`\n"
    )
    assert err.startswith("open this address to authorize fast-agent at `docs`:\n  http")
    done = run("go", "--card", card, "--message", "***CALL_TOOL docs__whoami {}", "--quiet")
    assert (done.code, done.out) == (0, "you are a friend\n")

    (listed,) = run("auth", "list", "--format", "json").json
    assert listed["server"] == server.url
    assert listed["place"] == "file"
    (line,) = run("auth", "list").out.splitlines()
    assert line.startswith(f"{server.url}   by {server.root}")
    tokens = [*server.grants[0].access, server.grants[0].refresh]
    sessions = b"".join(one.read_bytes() for one in home.rglob("*") if one.is_file()
                        and not one.name.startswith("authorizations.json"))  # fmt: skip
    assert not any(token.encode() in sessions for token in tokens)
    assert not any(token in line + err + done.err for token in tokens)

    done = run("auth", "logout", "docs")
    assert done.out == f"logged out of {server.url}\n"
    assert server.grants == []
    done = run("auth", "logout", server.url)
    assert done.code == 1
    assert "this program is not authorized at" in done.err


def test_a_name_that_is_not_there_is_met_with_the_near_one(
    project: Path, server: Server, run: Run
) -> None:
    declare(project, server)
    done = run("auth", "login", "dosc")
    assert done.code == 1
    assert done.err == (
        "error: the configuration has no MCP server `dosc`\nhint: did you mean `docs`?\n"
    )


def test_a_server_that_is_started_here_needs_none(project: Path, run: Run) -> None:
    (project / "fastagent.config.yaml").write_text("mcp: {servers: {t: {command: x}}}\n")
    done = run("auth", "login", "t")
    assert done.code == 1
    assert "server `t` is started here" in done.err


@pytest.mark.spec("OAUTH-7")
def test_nothing_that_an_agent_starts_authorizes(
    server: Server, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STARTED_VARIABLE, "1")
    for command in ("login", "logout"):
        done = run("auth", command, server.url)
        assert done.code == 1
        assert "was started by an agent" in done.err
    assert server.heard == []


def test_a_server_that_asks_for_nothing(run: Run, server: Server) -> None:
    server.answers["/mcp"] = (200, {"content-type": "application/json"}, "{}")
    done = run("auth", "login", server.url, "--no-browser")
    assert done.code == 1
    assert "did not ask for authorization" in done.err


def test_oauth_settings_that_do_not_fit_are_reported(project: Path, run: Run) -> None:
    (project / "fastagent.config.yaml").write_text(
        "mcp:\n  servers:\n    a: {url: 'https://a.com/mcp', oauth: {client_secret: s}}\n"
        "    b: {command: x, oauth: true}\n    c: {url: 'https://c.com', transport: stdio}\n"
        "    d: {url: 'https://d.com', oauth: {issuer: d.com}}\n"
    )
    done = run("check")
    assert done.code == 1
    assert "has a `client_secret` without the `issuer` it is for" in done.err
    assert "`oauth` does not apply to the server `b`" in done.err
    assert "so its transport is `http` or `sse`" in done.err
    assert "the `issuer` of the server `d` is not an `http` or `https` address" in done.err


@pytest.mark.spec("OAUTH-7")
def test_a_project_is_not_logged_in_before_it_is_approved(
    tmp_path: Path, server: Server, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tmp_path / "found"
    found.mkdir()
    declare(found, server, ", oauth: true")
    monkeypatch.chdir(found)
    done = run("auth", "login", "docs")
    assert done.code == 3
    assert "error[FA801]" in done.err
    assert f"your authorization to {server.root}" in done.err
    assert server.heard == []
