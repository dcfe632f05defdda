"""What a user sees of a batch: a line that is drawn again and again, and an estimate before."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from fast_agent.cli.output import standard_error
from fast_agent.cli.report import report_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.app import FastAgent
    from fast_agent.engine.batch import BatchCounts
    from fast_agent.engine.model_requests import ModelRequests
    from fast_agent.text.json_value import JsonValue

LINE_SECONDS: Final = 10.0
"""How often a line is printed if standard error is not a terminal."""

_BAR: Final = 24
_CHARACTERS_PER_TOKEN: Final = 4


class BatchProgress:
    """Shows how far a batch is, on standard error.

    Args:
        quiet: Show nothing.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = standard_error().is_terminal
        self._began = time.monotonic()
        self._before: int | None = None
        self._printed = 0.0
        self._width = 0

    def show(self, counts: BatchCounts, requests: ModelRequests | None) -> None:
        """Draw the line, or print one now and then."""
        if self._quiet:
            return
        now = time.monotonic()
        if self._before is None:
            self._before, self._began = counts.ended, now
        if self._terminal:
            line = self._line(counts, requests, now)
            standard_error().rewrite_line(line.ljust(self._width), last=False)
            self._width = len(line)
        elif now - self._printed >= LINE_SECONDS and self._printed:
            report_note(self._line(counts, requests, now))
            self._printed = now
        elif not self._printed:
            self._printed = now

    def note(self, text: str) -> None:
        """Print something a user should know."""
        if self._quiet:
            return
        self.close()
        report_note(text)

    def close(self) -> None:
        """End the line."""
        if self._width:
            standard_error().line()
            self._width = 0

    def _line(self, counts: BatchCounts, requests: ModelRequests | None, now: float) -> str:
        part = counts.ended / counts.total if counts.total else 1.0
        full = int(part * _BAR)
        rate = (counts.ended - (self._before or 0)) / max(now - self._began, 0.001)
        told = [
            f"{'█' * full}{'░' * (_BAR - full)} {counts.ended:,}/{counts.total:,}",
            f"{rate:.1f}/s",
        ]
        if rate > 0:
            told.append(f"{_duration((counts.total - counts.ended) / rate)} left")
        if requests is not None:
            told.append(f"{requests.tokens:,} tokens")
            if requests.nanodollars:
                told.append(f"${requests.nanodollars / 1e9:.4f}")
        if counts.failed:
            told.append(f"{counts.failed:,} failed")
        return " · ".join(told)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def estimate(
    program: FastAgent, agent: str, model: str | None, messages: Sequence[str]
) -> dict[str, JsonValue]:
    """Estimate what the first request of each item costs; tools and answers come on top.

    Args:
        program: The cards and the configuration.
        agent: The agent that answers.
        model: The model over the card, or None.
        messages: What is sent.
    """
    from fast_agent.errors import FastAgentError
    from fast_agent.models.selection import select_model

    config = program.load_set.cards[agent].config
    instruction = len(config.instruction or "")
    tokens = sum((len(text) + instruction) // _CHARACTERS_PER_TOKEN for text in messages)
    facts: dict[str, JsonValue] = {"input_tokens_at_least": tokens}
    try:
        selection = select_model(
            config, program.settings, os.environ, cwd=program.workspace, flag=model
        )
    except FastAgentError:
        return facts
    facts["model"] = selection.text
    price = _price(program, selection.text, tokens)
    facts["cost_at_least"] = None if price is None else price / 1e9
    return facts


def _price(program: FastAgent, model: str, tokens: int) -> int | None:
    """Return the price of input tokens in billionths of a US dollar; None where it is unknown."""
    from fast_agent.models.access import endpoint_of
    from fast_agent.models.facts import ModelFacts, facts_of, stated_facts
    from fast_agent.models.spec import parse_models
    from fast_agent.models.usage import Usage

    settings = program.settings
    spec = parse_models(model, settings.model_aliases, settings.endpoints)[0]
    facts = ModelFacts(stated_facts(spec, settings))
    if spec.is_cloud and not facts.is_priced:
        facts = facts_of(endpoint_of(spec, settings, os.environ), facts.stated)
    return facts.price(Usage(input_tokens=tokens, requests=1))
