"""Measure local models: right tool calls, structured answers and routes.

    python -m bench.local_eval smollm2 /models/another.gguf

Prints one row for each model. With the same seed, threads and weights the rows are the same.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio

from bench.local_eval.prompts import AGENTS, ROUTE_PROMPTS, SHAPE_PROMPTS, TOOL_PROMPTS, TOOLS
from fast_agent.cards.agent_config import RequestParams
from fast_agent.messages.message import Message
from fast_agent.models.local.model import LocalModel
from fast_agent.models.local.weights import find_weights
from fast_agent.models.model import ModelRequest, OutputSchema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.local_eval.prompts import ToolPrompt
    from fast_agent.text.json_value import JsonValue


@dataclass(slots=True)
class Row:
    """What one model reached; rates are from 0 to 1."""

    model: str
    tool_calls: float = 0.0
    without_recovery: float = 0.0
    structured_valid: float = 0.0
    structured_right: float = 0.0
    routes: float = 0.0
    prompt_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


def _same(wanted: object, found: object) -> bool:
    if isinstance(wanted, str):
        return isinstance(found, str) and found.strip().strip(".").lower() == wanted
    return isinstance(found, int | float) and not isinstance(found, bool) and found == wanted


def _fits(wanted: Mapping[str, object], found: Mapping[str, object]) -> bool:
    return all(_same(value, found.get(key)) for key, value in wanted.items())


class Evaluation:
    """Asks one model all prompts."""

    def __init__(self, path: Path, seed: int, threads: int | None) -> None:
        self._path = path
        self._threads = threads
        self._params = RequestParams(seed=seed, temperature=0.0, max_tokens=120)
        self.row = Row(path.stem)

    async def run(self) -> Row:
        """Ask everything, one after another."""
        started = time.perf_counter()
        for recover in (True, False):
            model = LocalModel(self._path, threads=self._threads, recover_calls=recover)
            right = [await self._tool(model, prompt) for prompt in TOOL_PROMPTS]
            rate = sum(right) / len(right)
            if recover:
                self.row.tool_calls = rate
                await self._shapes(model)
                self.row.routes = await self._routes(model)
            else:
                self.row.without_recovery = rate
            await model.aclose()
        self.row.seconds = time.perf_counter() - started
        return self.row

    async def _ask(self, model: LocalModel, request: ModelRequest) -> Message:
        response = await model.request(request)
        self.row.prompt_tokens += response.usage.input_tokens
        self.row.output_tokens += response.usage.output_tokens
        return response.message

    async def _tool(self, model: LocalModel, prompt: ToolPrompt) -> bool:
        request = ModelRequest("", [Message.user(prompt.text)], TOOLS, self._params)
        calls = (await self._ask(model, request)).tool_calls
        if prompt.tool is None or len(calls) != 1:
            return prompt.tool is None and not calls
        return calls[0].name == prompt.tool and _fits(prompt.arguments, calls[0].arguments)

    async def _object(
        self, model: LocalModel, system: str, text: str, schema: Mapping[str, Any]
    ) -> Mapping[str, JsonValue] | None:
        shape = OutputSchema("Answer", schema)
        request = ModelRequest(system, [Message.user(text)], (), self._params, shape)
        try:
            found: object = json.loads((await self._ask(model, request)).text)
        except ValueError:
            return None
        return cast("Mapping[str, JsonValue]", found) if isinstance(found, dict) else None

    async def _shapes(self, model: LocalModel) -> None:
        system = "Read the facts from the text and give them as JSON."
        valid = right = 0
        for prompt in SHAPE_PROMPTS:
            found = await self._object(model, system, prompt.text, prompt.schema)
            valid += found is not None and set(found) == set(prompt.right)
            right += found is not None and _fits(prompt.right, found)
        self.row.structured_valid = valid / len(SHAPE_PROMPTS)
        self.row.structured_right = right / len(SHAPE_PROMPTS)

    async def _routes(self, model: LocalModel) -> float:
        lines = "\n".join(f"- {name}: {about}" for name, about in AGENTS.items())
        system = f"Choose the agent who knows most about the question.\n{lines}"
        schema = {
            "type": "object",
            "properties": {"agent": {"enum": list(AGENTS)}},
            "required": ["agent"],
        }
        right = 0
        for text, agent in ROUTE_PROMPTS:
            found = await self._object(model, system, text, schema)
            right += found is not None and found.get("agent") == agent
        return right / len(ROUTE_PROMPTS)


def _table(rows: Sequence[Row]) -> str:
    head = ("model", "tool calls", "no recovery", "JSON fits", "JSON right", "routes", "seconds")
    lines: list[tuple[str, ...]] = [head]
    for row in rows:
        rates = (row.tool_calls, row.without_recovery, row.structured_valid, row.structured_right)
        cells = (*(f"{rate:.0%}" for rate in rates), f"{row.routes:.0%}", f"{row.seconds:.0f}")
        lines.append((row.model, *cells))
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


async def _measure(models: Sequence[str], seed: int, threads: int | None) -> list[Row]:
    rows: list[Row] = []
    for model in models:
        path = Path(model) if model.endswith(".gguf") else find_weights(model, os.environ)
        rows.append(await Evaluation(path, seed, threads).run())
    return rows


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", default=["smollm2"], help="names or GGUF files")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--format", choices=("human", "json"), default="human")
    given = parser.parse_args()
    rows = anyio.run(_measure, given.models, given.seed, given.threads)
    if given.format == "json":
        print(json.dumps([asdict(row) for row in rows]))
    else:
        counts = f"{len(TOOL_PROMPTS)} tool, {len(SHAPE_PROMPTS)} JSON, {len(ROUTE_PROMPTS)} route"
        silent = sum(prompt.tool is None for prompt in TOOL_PROMPTS) / len(TOOL_PROMPTS)
        print(f"{_table(rows)}\n\n{counts} prompts, seed {given.seed}, temperature 0")
        print(f"a model that never calls a tool reaches {silent:.0%} of the tool prompts")


if __name__ == "__main__":
    main()
