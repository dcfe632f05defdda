"""The demo: a set of cards on real input, command by command.

A model answers first. Then every kind of tool is called: an MCP server over stdio, a Python
function, another agent. A large model chooses tools itself; the small local one cannot, so without
a key the calls are spelled out and carried by the model `passthrough`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ARTICLE = (HERE / "article.txt").read_text(encoding="utf-8").strip()
QUESTION = "What is a tide?"
# The configuration is named, so its server may start: what only lies in a directory may not.
GO = ("go", "--card", "cards", "--config-path", "fastagent.config.yaml")
KEYS = {"ANTHROPIC_API_KEY": "sonnet", "OPENAI_API_KEY": "gpt"}


def chosen_model() -> str | None:
    """Return the model a key or an address in the environment gives; None where there is none."""
    if os.environ.get("GENERIC_BASE_URL"):
        return f"generic.{os.environ.get('GENERIC_MODEL', 'default')}"
    return next((model for variable, model in KEYS.items() if os.environ.get(variable)), None)


def say(text: str) -> None:
    """Print a line between the commands."""
    print(f"\n{text}", flush=True)


def run(*arguments: str, message: str | None = None) -> str:
    """Show a command, run it, and give its standard output; the demo ends where one fails."""
    command = ["fast-agent", *arguments]
    shown = shlex.join(command) + (" < message" if message is not None else "")
    print(f"$ {shown if len(shown) < 160 else shown[:157] + '...'}", flush=True)
    done = subprocess.run(
        command, cwd=HERE, input=message, text=True, stdout=subprocess.PIPE, check=False
    )
    print(done.stdout.strip(), flush=True)
    if done.returncode != 0:
        sys.exit(f"the command failed with status {done.returncode}")
    return done.stdout


def call(tool: str, **arguments: str) -> str:
    """Spell out a tool call for the model `passthrough`."""
    return f"***CALL_TOOL {tool} {json.dumps(arguments)}"


def main() -> None:
    """Run the demo."""
    model = chosen_model()
    say("1. The cards, checked:")
    run("check", "cards")
    if model is None:
        say("2. A real answer, written by the small local model on this machine's processor:")
        run("models", "pull", "smollm2")
        run(*GO, "--message", QUESTION, "--model", "local")
        say("3. Tools. A model of 135 million parameters does not choose tools, so the calls are")
        print("   spelled out, and the model `passthrough` makes them: an MCP server over stdio,")
        print("   a Python function, and the agent that just answered.")
        calls = (
            call("time__convert_time", source_timezone="Europe/Oslo", time="08:30",
                 target_timezone="Asia/Tokyo"),
            call("word_count", text=ARTICLE),
            call("agent__guide", message="Ferries were added. Ridership rose by twelve percent."),
        )  # fmt: skip
        run(
            *GO, "--agent", "clerk", "--message", "-", "--model",
            "passthrough", message="\n".join(calls),
        )  # fmt: skip
    else:
        say(f"2. A real answer, written by {model}:")
        run(*GO, "--message", QUESTION, "--model", model)
        say(f"3. Tools, chosen by {model}: an MCP server over stdio, a function, another agent.")
        question = (
            "When it is 08:30 in Oslo, what time is it in Tokyo? How many words does the text "
            f"below have? And what does the guide make of it?\n\n{ARTICLE}"
        )
        run(*GO, "--agent", "clerk", "--message", "-", "--model", model, message=question)
    say("That was it. `fast-agent new` writes a set of cards of your own.")


if __name__ == "__main__":
    main()
