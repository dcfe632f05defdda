"""The scenarios of the official conformance suite, and what becomes of each."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGE = "@modelcontextprotocol/conformance"
VERSION = "0.2.0-alpha.12"
HERE = Path(__file__).parent
LONGEST = 300.0
"""Seconds after which a program that has not ended hangs."""

HANDSHAKE = (
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "logging-set-level",
    "completion-complete",
    "tools-list",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
MODERN = (
    "server-stateless",
    "completion-complete",
    "tools-list",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "sep-2164-resource-not-found",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
)
EXTENSION = (
    "sep-2640-skills-directory",
    "sep-2640-skills-enumeration",
    "sep-2640-skills-manifest",
)
CLIENT = (
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
)

OVER_HTTP_ONLY = frozenset(
    {
        "server-stateless",
        "server-session-lifecycle",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
        "http-header-validation",
    }
)
"""Scenarios about headers, statuses and streams of HTTP, which stdio does not have."""

_NO_PROMPTS = "asks about a prompt, and a server of resources has none"
_NO_TOOL = "wants a tool made for this test"
NOT_OURS = {
    "completion-complete": _NO_PROMPTS,
    "sep-2549-prompts-list-caching-hints": _NO_PROMPTS,
    "sep-2575-server-sends-prompts-list-changed-on-subscription": _NO_PROMPTS,
    "sep-2575-server-rejects-undeclared-capability": _NO_TOOL,
    "sep-2575-missing-capability-http-400": _NO_TOOL,
    "sep-2575-http-server-no-independent-requests-on-stream": _NO_TOOL,
    "sep-2575-server-no-log-without-loglevel": _NO_TOOL,
    "sep-2575-server-sends-tools-list-changed-on-subscription": _NO_TOOL,
}
"""Checks that no server of resources alone can pass, each with the reason."""


class Outcome(NamedTuple):
    """How a scenario went.

    Args:
        name: Which.
        passed: How many checks passed.
        failed: The failures that count.
    """

    name: str
    passed: int
    failed: tuple[str, ...]


class Scenario(NamedTuple):
    """One scenario, for one protocol version where it knows several."""

    name: str
    version: str | None = None

    @property
    def label(self) -> str:
        """Both, for people."""
        return f"{self.name} {self.version or ''}".strip()


SERVER = (
    *(Scenario(name, "2025-11-25") for name in HANDSHAKE),
    *(Scenario(name, "2026-07-28") for name in MODERN),
    *(Scenario(name) for name in EXTENSION),
)
AGENTS = (
    *(
        Scenario(name, "2025-11-25")
        for name in (
            "server-initialize",
            "server-session-lifecycle",
            "ping",
            "logging-set-level",
            "tools-list",
            "prompts-list",
            "resources-list",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
        )
    ),
    *(
        Scenario(name, "2026-07-28")
        for name in (
            "server-stateless",
            "tools-list",
            "prompts-list",
            "resources-list",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
            "caching",
            "http-header-validation",
        )
    ),
)
"""What is tried of a server of agents."""

OVER_STDIO = tuple(one for one in SERVER if one.name not in OVER_HTTP_ONLY)


class Suite:
    """The suite's program.

    Args:
        program: Where it is.
        environ: What it runs in.
    """

    def __init__(self, program: Path, environ: Mapping[str, str]) -> None:
        self._program = program
        self._environ = environ

    def try_server(self, url: str, scenario: Scenario) -> Outcome:
        """Run a scenario against the server at an address."""
        return self._run(("server", "--url", url), scenario)

    def try_client(self, name: str) -> Outcome:
        """Run a scenario that our client is used in."""
        return self._run(
            ("client", "--command", f"{sys.executable} {HERE / 'client.py'}"), Scenario(name)
        )

    def _run(self, role: tuple[str, ...], scenario: Scenario) -> Outcome:
        version = ("--spec-version", scenario.version) if scenario.version else ()
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [
                    self._program,
                    *role,
                    "--scenario",
                    scenario.name,
                    "--output-dir",
                    folder,
                    *version,
                ],
                env=self._environ,
                capture_output=True,
                text=True,
                check=False,
                timeout=LONGEST,
            )
            checks = list(_checks(Path(folder)))
        if not checks:
            failed = (f"no check ran: {(done.stderr or done.stdout)[-500:]}",)
            return Outcome(scenario.label, 0, failed)
        failed = tuple(
            f"{one['id']}: {one.get('errorMessage') or one.get('description')}"
            for one in checks
            if one["status"] in {"FAILURE", "WARNING"} and one["id"] not in NOT_OURS
        )
        passed = sum(one["status"] == "SUCCESS" for one in checks)
        return Outcome(scenario.label, passed, failed)


def _checks(folder: Path) -> Iterator[dict[str, str]]:
    for file in folder.rglob("checks.json"):
        yield from json.loads(file.read_text("utf-8"))
