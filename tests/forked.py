"""Run commands of `fast-agent` to their end, in forks of a process that imported what they need.

A command then costs a tenth of a process of its own. Tests of what starting does, and of commands
that are killed or talked to, start one of their own.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def run_forked(
    arguments: Sequence[str], cwd: Path, environ: Mapping[str, str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command.

    Args:
        arguments: What follows `fast-agent`.
        cwd: The directory it runs in.
        environ: Its whole environment.
        stdin: What it reads on standard input.
    """
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    asked = [str(cwd), [*arguments], dict(environ), stdin]
    process.stdin.write(f"{json.dumps(asked)}\n")
    process.stdin.flush()
    status, out, err = json.loads(process.stdout.readline())
    return subprocess.CompletedProcess([*arguments], status, out, err)


@cache
def _process() -> subprocess.Popen[str]:
    """Return the one of this process of tests; it ends with its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forked"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


_ON_FIRST_USE = (
    "fast_agent.agents.delegation.agent_tool",
    "fast_agent.agents.delegation.child_history",
    "fast_agent.agents.history.compaction",
    "fast_agent.agents.output",
    "fast_agent.cli.commands.batch",
    "fast_agent.cli.running.batch_run",
    "fast_agent.cli.running.temporal",
    "fast_agent.engine.batch",
    "fast_agent.engine.batch_input",
    "fast_agent.engine.batch_output",
    "fast_agent.engine.edition",
    "fast_agent.engine.embedded",
    "fast_agent.models.providers.backlog",
    "fast_agent.models.providers.link",
    "fast_agent.models.providers.provider",
    "fast_agent.registry.card_root",
    "fast_agent.registry.reload",
    "fast_agent.text.yaml_parser",
    "fast_agent.tools.functions.card_functions",
    "fast_agent.tools.functions.loader",
    "fast_agent.tools.hooks",
    "fast_agent.tools.worker_threads",
    "genai_prices.data",
    "openai.resources.chat.completions.completions",
    "yaml12",
)
"""What programs with cards, batches and requests import, beyond `import_shared`."""


def import_more() -> None:
    """Import what commands import for cards and batches, and for a first request to a model."""
    from fast_agent.models.providers.classes import ADAPTERS

    for name in _ON_FIRST_USE:
        import_module(name)
    for adapter in ADAPTERS.values():
        for name in (adapter.model, adapter.provider):
            with suppress(ImportError):  # not every SDK is installed
                import_module(f"pydantic_ai.{name.partition(':')[0]}")
    from openai.types.chat import ChatCompletion, ChatCompletionChunk
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    # Every fork would do it for its first request.
    ModelMessagesTypeAdapter.rebuild()
    for message in (ChatCompletion, ChatCompletionChunk):
        message.model_rebuild()


if __name__ == "__main__":
    from tests.golden.forked_commands import import_shared, serve

    import_shared()
    import_more()
    serve()
