"""The scenarios of the official conformance suite, and what becomes of each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

PACKAGE = "@modelcontextprotocol/conformance"
VERSION = "0.2.0-alpha.12"
HERE = Path(__file__).parent
MAX_SECONDS = 300.0
"""Seconds after which a program that has not ended hangs."""

_RESULTS = re.compile(r"(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
"""The folder of a scenario's results: its name, and when it ended."""

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
OF_RESOURCES = {
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

_ALWAYS_ANSWERS = "the tool of an agent that cannot ask says so, and the agent answers all the same"
_OF_FILES = "the set of agents changes with files, not by a call"
OF_AGENTS = {
    "sep-2575-server-rejects-undeclared-capability": _ALWAYS_ANSWERS,
    "sep-2575-missing-capability-http-400": _ALWAYS_ANSWERS,
    "sep-2575-server-sends-tools-list-changed-on-subscription": _OF_FILES,
    "sep-2575-server-sends-prompts-list-changed-on-subscription": _OF_FILES,
}
"""Checks that no server of agents alone can pass, each with the reason."""


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
            "tools-call-simple-text",
            "tools-call-error",
            "tools-call-elicitation",
            "tools-call-sampling",
            "json-schema-2020-12",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
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
            "tools-call-simple-text",
            "tools-call-error",
            "json-schema-2020-12",
            "input-required-result-request-state",
            "input-required-result-multi-round",
            "input-required-result-missing-input-response",
            "input-required-result-result-type",
            "input-required-result-unsupported-methods",
            "input-required-result-tampered-state",
            "input-required-result-validate-input",
            "resources-list",
            "sep-2164-resource-not-found",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
            "caching",
            "http-header-validation",
        )
    ),
)
"""What is tried of a server of agents."""

_WORDS = "an agent answers in words"
_HISTORIES = "prompts of agents are their histories, without arguments"
_NO_ROOTS = "agents do not ask for roots or for several things at once"
_OWN_NAME = "answers a question by a name that the server did not give it"
NOT_OF_AGENTS = {
    "tools-call-image": _WORDS,
    "tools-call-audio": _WORDS,
    "tools-call-embedded-resource": _WORDS,
    "tools-call-mixed-content": _WORDS,
    "tools-call-with-logging": "steps of agents are reported as progress, not as log messages",
    "tools-call-with-progress": "wants three steps reported; one that is overtaken is left out",
    "http-custom-header-server-validation": "no argument of an agent is a header",
    "server-sse-polling": "streams cannot be resumed",
    "resources-read-text": "resources are served beside agents, and tried above",
    "resources-read-binary": "as above",
    "resources-templates-read": "as above",
    "resources-subscribe": "as above",
    "resources-unsubscribe": "as above",
    "completion-complete": _HISTORIES,
    "prompts-get-simple": _HISTORIES,
    "prompts-get-with-args": _HISTORIES,
    "prompts-get-embedded-resource": _HISTORIES,
    "prompts-get-with-image": _HISTORIES,
    "input-required-result-basic-elicitation": _OWN_NAME,
    "input-required-result-ignore-extra-params": _OWN_NAME,
    "input-required-result-basic-sampling": "the same, of a sampling",
    "input-required-result-basic-list-roots": _NO_ROOTS,
    "input-required-result-multiple-input-requests": _NO_ROOTS,
    "input-required-result-non-tool-request": _HISTORIES,
    "input-required-result-capability-check": _ALWAYS_ANSWERS,
}
"""Scenarios that are not tried of a server of agents, each with the reason."""

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

    def server_trials(
        self, url: str, excused: Mapping[str, str], scenarios: Iterable[Scenario]
    ) -> Iterator[Callable[[], list[Outcome]]]:
        """Scenarios against the server at an address; all of a version are one process.

        Args:
            url: Where the server is.
            excused: Checks that do not count.
            scenarios: Which scenarios.
        """
        role = ("server", "--url", url)
        versions: dict[str, list[Scenario]] = {}
        for one in scenarios:
            if one.version is None:
                yield partial(self._run, (*role, "--scenario", one.name), [one], excused)
            else:
                versions.setdefault(one.version, []).append(one)
        for version, wanted in versions.items():
            options = ("--suite", "all", "--spec-version", version)
            yield partial(self._run, (*role, *options), wanted, excused)

    def client_trials(self) -> Iterator[Callable[[], list[Outcome]]]:
        """Scenarios that our client is used in."""
        role = ("client", "--command", f"{sys.executable} {HERE / 'client.py'}")
        for name in CLIENT:
            yield partial(self._run, (*role, "--scenario", name), [Scenario(name)], {})

    def _run(
        self, arguments: Sequence[str], scenarios: Iterable[Scenario], excused: Mapping[str, str]
    ) -> list[Outcome]:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [self._program, *arguments, "--output-dir", folder],
                env=self._environ,
                capture_output=True,
                text=True,
                check=False,
                timeout=MAX_SECONDS,
            )
            checks = _checks(Path(folder))
        said = (done.stderr or done.stdout)[-500:]
        return [_outcome(one, checks.get(one.name, ()), excused, said) for one in scenarios]


def _checks(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Read what was checked, by scenario."""
    found: dict[str, list[dict[str, str]]] = {}
    for file in folder.rglob("checks.json"):
        name = _RESULTS.fullmatch(file.parent.name)
        assert name is not None, file
        found[name[1]] = json.loads(file.read_text("utf-8"))
    return found


def _outcome(
    scenario: Scenario, checks: Iterable[dict[str, str]], excused: Mapping[str, str], said: str
) -> Outcome:
    if not checks:
        return Outcome(scenario.label, 0, (f"no check ran: {said}",))
    failed = tuple(
        f"{one['id']}: {one.get('errorMessage') or one.get('description')}"
        for one in checks
        if one["status"] in {"FAILURE", "WARNING"} and one["id"] not in excused
    )
    passed = sum(one["status"] == "SUCCESS" for one in checks)
    return Outcome(scenario.label, passed, failed)
