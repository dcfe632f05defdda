"""Session usage: what sessions used by agent, model and turn; shown by `/usage` and `usage`.

The counts are those of the sessions' logs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Self

from fast_agent.commands.wording import many
from fast_agent.models.usage import Usage
from fast_agent.text.frozen import frozen
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fast_agent.sessions.state import SessionState
    from fast_agent.text.json_value import JsonObject

_BAR_COLUMNS = 60
_LINE_COLUMNS = 79
_MAX_NAME_COLUMNS = 32


@frozen
class TurnUsage:
    """What a turn used with all it started.

    Args:
        label: What names the turn: its number, or its session and number.
        agent: The agent.
        usage: The counts.
    """

    label: str
    agent: str
    usage: Usage


@frozen
class SessionUsage:
    """What a session used, or several.

    Args:
        total: All of it; also what no turn below says.
        agents: What each agent used itself, the most first.
        models: What each model used, the most first.
        turns: The turns that nothing else started, in order.
    """

    total: Usage
    agents: Mapping[str, Usage]
    models: Mapping[str, Usage]
    turns: tuple[TurnUsage, ...]

    @classmethod
    def of(cls, state: SessionState) -> Self:
        """Count what a session used."""
        turns = state.all_turns
        return cls(
            Usage(*state.used),
            _sums((turn.agent, Usage(*turn.own)) for turn in turns if turn.own),
            _sums((turn.model, Usage(*turn.own)) for turn in turns if turn.own and turn.model),
            tuple(
                TurnUsage(str(number), turn.agent, Usage(*turn.used))
                for number, turn in enumerate(state.turns, 1)
            ),
        )

    @classmethod
    def together(cls, sessions: Mapping[str, SessionUsage]) -> Self:
        """Add what sessions used; each is one of the turns of the sum.

        Args:
            sessions: The sessions by their label.
        """
        every = sessions.values()
        return cls(
            sum((one.total for one in every), Usage()),
            _sums(pair for one in every for pair in one.agents.items()),
            _sums(pair for one in every for pair in one.models.items()),
            tuple(TurnUsage(label, _most(one), one.total) for label, one in sessions.items()),
        )


def _most(usage: SessionUsage) -> str:
    """Return the agent most turns of a session were asked of."""
    counts = Counter(turn.agent for turn in usage.turns)
    return counts.most_common(1)[0][0] if counts else ""


def _sums(pairs: Iterable[tuple[str | None, Usage]]) -> dict[str, Usage]:
    found: dict[str, Usage] = {}
    for name, usage in pairs:
        if name is not None:
            found[name] = found.get(name, Usage()) + usage
    return dict(sorted(found.items(), key=lambda one: (-one[1].total_tokens, one[0])))


def usage_lines(usage: SessionUsage, *, turns: str = "turn", most: int = 50) -> list[str]:
    """Draw what was used: the sum, each agent and model, and a bar for each turn.

    Args:
        usage: The counts.
        turns: What a turn is called, such as `session` where each is the sum of one.
        most: Maximum number of turns; the last ones are drawn.
    """
    lines = [counted(usage.total)]
    lines += _table("by agent, each itself:", usage.agents)
    lines += _table("by model:", usage.models)
    uncounted = usage.total.requests - sum(one.requests for one in usage.agents.values())
    if uncounted > 0:
        lines.append(f"  in addition {many(uncounted, 'request')} of agents that were not recorded")
    return lines + _bars(usage, turns, most)


def usage_json(usage: SessionUsage, *, turns: str = "turns") -> JsonObject:
    """Return the counts as a JSON object."""
    return {
        "total": asdict(usage.total),
        "agents": {name: asdict(one) for name, one in usage.agents.items()},
        "models": {name: asdict(one) for name, one in usage.models.items()},
        turns: [{"id": one.label, "agent": one.agent, **asdict(one.usage)} for one in usage.turns],
    }


def counted(usage: Usage) -> str:
    """Describe counts in a line."""
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    return (
        f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out, "
        f"{many(usage.requests, 'request')}, {many(usage.tool_calls, 'tool call')}"
        f"{_price(usage)}"
    )


def _table(title: str, rows: Mapping[str, Usage]) -> list[str]:
    if not rows:
        return []
    names = {name: _named(name) for name in rows}
    width = max(map(len, names.values()))
    return ["", title, *(f"  {names[name]:<{width}}  {counted(one)}" for name, one in rows.items())]


def _bars(usage: SessionUsage, turns: str, most: int) -> list[str]:
    shown = usage.turns[-most:]
    if not shown:
        return []
    longest = max(1, *(one.usage.total_tokens for one in shown))
    labels = [f"{one.label} {_named(one.agent)}" for one in shown]
    width = max(map(len, labels))
    left = len(usage.turns) - len(shown)
    more = f", the last {len(shown)} of {len(usage.turns):,}" if left else ""
    lines = ["", f"tokens by {turns}, with all it started{more}:"]
    digits = len(f"{longest:,}")
    room = min(_BAR_COLUMNS, _LINE_COLUMNS - len(f"  {'':{width}}  {'':{digits}} "))
    for label, one in zip(labels, shown, strict=True):
        tokens = one.usage.total_tokens
        bar = "#" * max(bool(tokens), round(room * tokens / longest))
        lines.append(f"  {label:<{width}}  {tokens:>{digits},} {bar}".rstrip())
    return lines


def _named(name: str) -> str:
    text = visible(name)
    cut = f"{text[: _MAX_NAME_COLUMNS - 3]}..."
    return text if len(text) <= _MAX_NAME_COLUMNS else cut


def _price(usage: Usage) -> str:
    if not usage.priced:
        return ""
    rest = usage.requests - usage.priced
    more = f" and {many(rest, 'request')} of unknown price" if rest else ""
    return f", ${usage.nanodollars / 1e9:,.4f}{more}"
