"""Turn lines: what a turn adds to the scrollback in addition to its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from fast_agent.messages.message import ImageContent
from fast_agent.text.wording import plural
from fast_agent.tui.drawing.activity import seconds, tokens
from fast_agent.tui.drawing.rows import shown, width, wrap
from fast_agent.tui.drawing.scroll import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import anyio

    from fast_agent.agents.events import ModelAnswered
    from fast_agent.agents.turn_context import SteeringMessage, TurnResult
    from fast_agent.config.settings import TuiSettings
    from fast_agent.messages.message import Content
    from fast_agent.tui.drawing.activity import Activity
    from fast_agent.tui.drawing.images import Images
    from fast_agent.tui.drawing.scroll import Scroll
    from fast_agent.tui.drawing.theme import Theme


@dataclass(slots=True)
class TurnState:
    """The turn that is running."""

    agent: str
    started: float
    scope: anyio.CancelScope
    stopping: bool = False
    streamed: bool = False
    thinking: str = ""
    thinking_since: float = 0.0
    thoughts: str = ""
    steering: list[SteeringMessage] = field(default_factory=list["SteeringMessage"])


class TurnLines:
    """Writes who speaks, what was thought, and what a turn took.

    Args:
        scroll: Takes the lines.
        theme: The styles.
        activity: The tools and agents at work.
        clock: A clock that only goes forward, in seconds.
        settings: How reasoning is shown; may change.
        images: Draws images.
    """

    def __init__(
        self,
        scroll: Scroll,
        theme: Theme,
        activity: Activity,
        clock: Callable[[], float],
        settings: Callable[[], TuiSettings],
        images: Images,
    ) -> None:
        self._images = images
        self._settings = settings
        self._scroll = scroll
        self._theme = theme
        self._activity = activity
        self._clock = clock

    def user(self, text: str, who: str) -> None:
        """Write what the user said."""
        columns = self._scroll.text_width
        self._scroll.add_lines([self._ruled(self._theme.you(who), width(who))], "rule")
        self._scroll.add_lines(quoted(text, columns), "user")

    def agent(self, name: str, names: Sequence[str]) -> None:
        """Write the rule of an agent of a set."""
        label = shown(name)
        style = self._theme.agent(name, names)
        self._scroll.add_lines([self._ruled(style(label), width(label))], "rule")

    def answered(self, event: ModelAnswered, turn: TurnState) -> None:
        """Write an answer that was not streamed, and end its text."""
        self.end_thought(turn)
        if not turn.streamed and event.message.text:
            self._scroll.add_text(event.message.text)
        self._scroll.end_text()
        self.images(event.message.content)

    def images(self, content: Sequence[Content]) -> None:
        """Write the images among content."""
        found = [block for block in content if isinstance(block, ImageContent)]
        if found:
            self._scroll.add_drawn(partial(self._images.rows, found), "image")

    def end_thought(self, turn: TurnState) -> None:
        """Write that a thought is over."""
        if not turn.thinking:
            return
        spent = seconds(self._clock() - turn.thinking_since)
        thought, how = turn.thinking.strip(), self._settings().thinking
        turn.thinking, turn.thinking_since = "", 0.0
        if how == "hide":
            return
        lines = [self._theme.dim(f" thought {spent}")]
        if how == "show":
            room = max(10, self._scroll.text_width - 3)
            rows = (row for line in thought.split("\n") for row in wrap(shown(line), room))
            lines += [self._theme.dim(f"   {row}") for row in rows]
        self._scroll.add_lines(lines, "work")

    def ended(self, turn: TurnState) -> None:
        """End what a turn was writing."""
        self.end_thought(turn)
        self._scroll.end_text()
        self._activity.restart()

    def finished(self, turn: TurnState, result: TurnResult) -> None:
        """Write what a turn took."""
        if result.workflow is not None and result.text:
            self._scroll.add_markdown(result.text, "text")
        counts = self._activity.counts
        self.ended(turn)
        if (shortcoming := result.shortcoming) is not None:
            self._scroll.add_lines([self._theme.warning(shortcoming)])
        usage = result.tree_usage
        facts = [seconds(self._clock() - turn.started)]
        for number, noun in zip(counts, ("tool", "agent"), strict=True):
            if number:
                facts.append(plural(number, noun))
        if usage.input_tokens or usage.output_tokens:
            cached = (
                f" ({tokens(usage.cache_read_tokens)} cached)" if usage.cache_read_tokens else ""
            )
            facts.append(
                f"{tokens(usage.input_tokens)} in{cached} {tokens(usage.output_tokens)} out"
            )
        dot = f" {self._theme.sign('dot')} "
        self._scroll.add_lines([self._theme.dim(dot.join(facts))])

    def _ruled(self, label: str, size: int) -> str:
        if self._theme.is_spoken:
            return f"{label}:"
        rest = max(0, self._scroll.text_width - size - 1)
        return f"{label} {self._theme.dim(self._theme.sign('rule') * rest)}"
