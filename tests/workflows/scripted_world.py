"""A small world of agents whose models are scripted in the test, and which notes what they saw."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from anyio.lowlevel import checkpoint

from fast_agent.agents.events import Warned, WorkflowAdvanced
from fast_agent.agents.runtime_options import RuntimeOptions
from fast_agent.cards.agent_config import AgentConfig, CardType
from fast_agent.cards.card import Card
from fast_agent.cards.load_set import LoadSet
from fast_agent.config.settings import Settings
from fast_agent.models.script import Script, ScriptedModel, as_steps
from fast_agent.runtime.runtime import BUILDERS, Runtime
from fast_agent.workflows import WORKFLOWS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from fast_agent.agents.events import Event
    from fast_agent.messages.message import Content, Message
    from fast_agent.models.model import DeltaSink, ModelRequest, ModelResponse, ToolSpec
    from fast_agent.models.script import Step
    from fast_agent.runtime.blueprint import Blueprint, Builder
    from fast_agent.runtime.context import RuntimeContext
    from fast_agent.text.json_value import JsonObject

Play: TypeAlias = "Sequence[Step | str] | Callable[[ModelRequest], Step | str]"
"""What an agent answers: steps that all instances take in turn, or a function of the request."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request a model was asked."""

    agent: str
    system: str
    messages: tuple[Message, ...]
    structured: bool
    tools: tuple[ToolSpec, ...] = ()

    @property
    def text(self) -> str:
        """The text of what it was to answer."""
        return self.messages[-1].text


@dataclass(slots=True)
class World:
    """Scripted models for agents by name; an agent without a script echoes.

    Attributes:
        shown: What the answers of an agent show beside their text, such as a picture, by its name.
        seen: Every request, in the order they were made.
        events: Every event.
        closed: The agents whose models were closed, one for each instance.
        pause: Waited for before an agent answers, by its name.
    """

    plays: dict[str, Play] = field(default_factory=dict[str, Play])
    shown: dict[str, tuple[Content, ...]] = field(default_factory=dict[str, "tuple[Content, ...]"])
    seen: list[Seen] = field(default_factory=list[Seen])
    events: list[Event] = field(default_factory=list["Event"])
    closed: list[str] = field(default_factory=list[str])
    pause: Callable[[str], Awaitable[None]] | None = None
    _scripts: dict[str, Script] = field(default_factory=dict[str, Script])

    def runtime(
        self, *configs: AgentConfig, settings: Settings | None = None, **fields: object
    ) -> Runtime:
        """Make the agents live, with further fields of their options."""
        cards = [Card(config, f"{config.name}.md") for config in configs]
        options = RuntimeOptions(workspace=Path("/"), environ={}, listener=self.events.append)
        options = replace(options, **fields)
        builders = {
            name: self._with_models(make) for name, make in {**BUILDERS, **WORKFLOWS}.items()
        }
        return Runtime(LoadSet.of(cards), settings or Settings(), options, builders=builders)

    def asked(self, agent: str) -> list[Seen]:
        """Return the requests of one agent's models."""
        return [one for one in self.seen if one.agent == agent]

    def facts_of(self, kind: str) -> list[JsonObject]:
        """Return the facts of the workflow events of a kind."""
        found = [event for event in self.events if isinstance(event, WorkflowAdvanced)]
        return [event.facts for event in found if event.kind == kind]

    @property
    def warnings(self) -> list[str]:
        """Every warning."""
        return [event.message for event in self.events if isinstance(event, Warned)]

    def finish(self) -> None:
        """Check that the scripts were used up."""
        for script in self._scripts.values():
            script.finish()

    def create(
        self,
        text: str,
        *,
        agent: str = "",
        api_key: str | None = None,
        directory: Path | None = None,
        new_call_id: Callable[[], str] | None = None,
    ) -> NotingModel:
        """Make the model of an agent."""
        del text, api_key, directory, new_call_id
        play = self.plays.get(agent, lambda request: request.messages[-1].text)
        if callable(play):
            return NotingModel(self, agent, ScriptedModel(lambda request, _: play(request)))
        script = self._scripts.setdefault(agent, Script(as_steps(play), label=f"`{agent}`"))
        return NotingModel(self, agent, ScriptedModel(script))

    def _with_models(self, make: Builder) -> Builder:
        def build(card: Card, context: RuntimeContext) -> Blueprint:
            return make(card, replace(context, models=self))

        return build


class NotingModel:
    """A scripted model that notes what it is asked."""

    def __init__(self, world: World, agent: str, inner: ScriptedModel) -> None:
        self._world = world
        self._agent = agent
        self._inner = inner

    @property
    def name(self) -> str:
        """The spec it was made from."""
        return "scripted"

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Note a request and answer it."""
        structured = request.output_schema is not None
        messages = tuple(request.messages)
        tools = tuple(request.tools)
        self._world.seen.append(Seen(self._agent, request.system, messages, structured, tools))
        if self._world.pause is not None:
            await self._world.pause(self._agent)
        response = await self._inner.request(request, on_delta)
        more = self._world.shown.get(self._agent, ())
        message = replace(response.message, content=(*response.message.content, *more))
        return replace(response, message=message) if more else response

    async def aclose(self) -> None:
        """Close the model, after a wait that a cancelled task does not survive."""
        await checkpoint()
        self._world.closed.append(self._agent)
        await self._inner.aclose()


def agent(name: str, **fields: object) -> AgentConfig:
    """Make an agent."""
    return card(name, "agent", **fields)


def card(name: str, kind: CardType, **fields: object) -> AgentConfig:
    """Make a card of a type."""
    made = AgentConfig(name=name, type=kind, instruction=f"You are {name}.", model="passthrough")
    return replace(made, **fields)


def agents(names: Iterable[str]) -> tuple[AgentConfig, ...]:
    """Make an agent for each name."""
    return tuple([agent(name) for name in names])
