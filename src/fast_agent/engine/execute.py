"""Execute a described step in any process that has loaded the edition of its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from logging import getLogger
from typing import TYPE_CHECKING, Final, TypeVar, cast

from fast_agent.agents.budget import Meter
from fast_agent.agents.delegation.child_history import (
    HistoryFiles,
    StepSource,
    history_files,
    reads_of,
)
from fast_agent.agents.events import (
    ModelAnswered,
    ModelRequested,
    Origin,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from fast_agent.agents.history.transcript import Transcript
from fast_agent.agents.live_agent import LlmAgent
from fast_agent.agents.step_tools import attempted, call_to_json
from fast_agent.agents.tool_calls import ChildCallBatch, TurnCallContext
from fast_agent.engine.part_store import missing_part
from fast_agent.errors import RunError
from fast_agent.messages.json_message import message_from_wire
from fast_agent.messages.message import ToolCall, ToolResult
from fast_agent.models.model import Usage
from fast_agent.models.step_model import request_from_json, response_to_json, usage_from_json
from fast_agent.steps.parts import Parts, StepRedactor, spread
from fast_agent.steps.steps import NullSteps, Place, Places, entered, turn_id
from fast_agent.tools.tool import no_progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Self

    from fast_agent.agents.delegation.child_history import Source
    from fast_agent.agents.events import Event, Listener
    from fast_agent.cards.agent_config import HookPoint
    from fast_agent.messages.message import Message
    from fast_agent.models.model import DeltaSink, Model
    from fast_agent.runtime.runtime import Runtime
    from fast_agent.steps.steps import Codec, Kind, Step, Work
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.human import Human
    from fast_agent.tools.tool import Progress

T = TypeVar("T")
log = getLogger(__name__)

_MAX_MESSAGES: Final = 50_000
"""How many messages are kept in memory, so that each is read once; of the newest, all are."""

HISTORY_FILES: Final = "history files of "


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedStep:
    """A step as it is sent to its executor.

    Args:
        run: The run it belongs to.
        edition: The edition of its cards.
        kind: What is asked.
        name: Which one, such as the id of a tool call.
        agent: The agent that asks.
        turn: The path of its turn.
        number: Which of the same questions of the turn it is, from 1.
        asked: The question; long parts are named by their digest.
        pieces: The parts that are not kept anywhere yet, by their digest.
    """

    run: str
    edition: str
    kind: Kind
    name: str
    agent: str
    turn: str
    number: int
    asked: JsonValue = None
    pieces: Mapping[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])

    @property
    def turn_id(self) -> str:
        """The id of its turn, the same in every attempt."""
        return turn_id(self.run, self.turn)


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """What a step gave.

    Args:
        gave: The answer, as its codec writes it.
        pieces: Parts the answer names by their digest.
    """

    gave: JsonValue
    pieces: Mapping[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])


class StepExecutor:
    """Executes the steps of the runs of one edition.

    Args:
        runtime: Its agents.
        workspace: The directory they work in, absolute.
        redactor: What is hidden in questions and answers.
        retries: How often a failed model request is sent again; None leaves it to the provider.
    """

    def __init__(
        self,
        runtime: Runtime,
        workspace: Path,
        redactor: StepRedactor,
        *,
        retries: int | None = None,
    ) -> None:
        self._runtime = runtime
        self._workspace = workspace
        self._retries = retries
        self._redactor = redactor
        self._models: dict[str, Model] = {}
        self._conversations: dict[str, list[Message]] = {}

    def known(self, step: DescribedStep) -> Mapping[str, Sequence[Message]]:
        """Return conversations whose parts a step need not be given, by the digest of their end."""
        return dict(self._conversations) if step.kind == "model" else {}

    async def aclose(self) -> None:
        """Close the models."""
        for model in self._models.values():
            await model.aclose()

    async def execute(
        self,
        step: DescribedStep,
        parts: Mapping[str, JsonValue],
        known: Mapping[str, Sequence[Message]],
        *,
        on_delta: DeltaSink | None = None,
        progress: Progress = no_progress,
        human: Human | None = None,
        listener: Listener | None = None,
    ) -> StepAnswer:
        """Ask what a step asks.

        Args:
            step: The step.
            parts: Every part its question names, but for those of known conversations.
            known: What `known` returned.
            on_delta: Notified of the text of a model as it comes, or None.
            progress: Notified of the progress of a tool.
            human: Asks the user of the run, or None.
            listener: Hears of a model request and a tool call what it would hear in a turn: each is
                a turn of its own. None hears nothing.

        Raises:
            FastAgentError: What is asked could not be answered.
        """
        # Steps of a turn may be under way at once, and each ends separately.
        name = f"{step.turn_id} {step.kind} {step.name} {step.number}"
        events = TurnEvents(Origin(step.agent, name, step.turn_id), listener)
        match step.kind:
            case "model":
                with events:
                    return StepAnswer(await self._ask_model(step, parts, known, on_delta, events))
            case "tool":
                with events:
                    return StepAnswer(await self._call_tool(step, progress, human, events))
            case "hook":
                return await self._run_hook(step, parts)
            case "read":
                return await self._read(step)
            case _:
                raise RunError(
                    f"a step of kind `{step.kind}` cannot be executed by a worker: {step.name}",
                    hint="run it with `--engine embedded`",
                )

    async def _ask_model(
        self,
        step: DescribedStep,
        parts: Mapping[str, JsonValue],
        known: Mapping[str, Sequence[Message]],
        on_delta: DeltaSink | None,
        events: TurnEvents,
    ) -> JsonValue:
        asked = dict(cast("JsonObject", step.asked))
        messages = self._conversation(str(asked["messages"]), parts, known)
        asked["messages"] = ""
        asked = cast("JsonObject", self._redactor.restored(spread(asked, parts)))
        model = self._models.get(step.agent)
        if model is None:
            model = self._models[step.agent] = self._runtime.model_for(step.agent)
        request = replace(request_from_json(asked), messages=messages)
        if self._retries is not None:
            request = replace(request, params=replace(request.params, retries=self._retries))
        events.notify(ModelRequested, str(asked["model"]), step.number)
        response = await model.request(request, on_delta)
        events.notify(ModelAnswered, response.message, response.usage, step.number)
        return self._redactor.redacted(response_to_json(response))

    def _conversation(
        self, last: str, parts: Mapping[str, JsonValue], known: Mapping[str, Sequence[Message]]
    ) -> list[Message]:
        """Read the conversation that ends with a line, from the longest start of it that is known.

        Raises:
            RunError: A part of it is missing.
        """
        line = last
        added: list[Message] = []
        while line and line not in known:
            if line not in parts:
                raise missing_part(line)
            joint = cast("Mapping[str, str]", parts[line])
            digest = joint["message"]
            if digest not in parts:
                raise missing_part(digest)
            added.append(message_from_wire(self._redactor.restored(parts[digest])))
            line = joint["after"]
        messages = [*known.get(line, ()), *reversed(added)]
        kept = self._conversations
        kept.pop(line, None)
        kept[last] = messages
        while len(kept) > 1 and sum(map(len, kept.values())) > _MAX_MESSAGES:
            del kept[next(iter(kept))]
        return messages

    async def _call_tool(
        self, step: DescribedStep, progress: Progress, human: Human | None, events: TurnEvents
    ) -> JsonValue:
        asked = cast("Mapping[str, JsonValue]", self._redactor.restored(step.asked))
        call = ToolCall(step.name, str(asked["tool"]), cast("JsonObject", asked["arguments"]))
        table = await self._agent(step.agent).setup.tools.table()
        tool = table.get(call.name)
        used = Meter(step.agent)
        if tool is None:
            result = ToolResult.error(call.id, f"tool `{call.name}` no longer exists")
            return call_to_json(result, used.usage)
        events.notify(ToolStarted, call, tool.source, tool.server_name)
        conversation = self._runtime.new_conversation()
        try:
            turn = conversation.context.below(step.turn_id, (used,), depth=step.turn.count("/"))
            context = TurnCallContext(
                agent_name=step.agent,
                turn_id=step.turn_id,
                call_id=call.id,
                correlation_id=turn_id(step.run, step.turn.partition("/")[0]),
                progress=progress,
                human=human,
                conversation=conversation.conversation,
                deps=turn.deps,
                origin=Origin(step.agent, step.turn_id, None),
                turn=turn,
                child_calls=ChildCallBatch(Transcript(), log.warning, conversation=conversation),
                index=0,
            )
            if turn.charges is None or tool.server_name is None:
                result = await attempted(tool, call, context)
            else:
                with turn.charges.entered(step.agent, turn.meters):
                    result = await attempted(tool, call, context)
        finally:
            await conversation.aclose()
        events.notify(ToolFinished, call, result)
        return self._redactor.redacted(call_to_json(result, used.usage))

    async def _run_hook(self, step: DescribedStep, parts: Mapping[str, JsonValue]) -> StepAnswer:
        asked = cast("JsonObject", self._redactor.restored(spread(step.asked, parts)))
        message = message_from_wire(asked["message"])
        hooks = self._agent(step.agent).setup.hooks
        if hooks is None:
            raise RunError(f"agent `{step.agent}` no longer has hooks")
        history = cast("Sequence[JsonValue]", asked["messages"])
        wanted = await hooks.run(
            cast("HookPoint", step.name),
            message,
            message_history=[message_from_wire(one) for one in history],
            iteration=int(cast("int", asked["iteration"])),
            agent_name=step.agent,
            usage=usage_from_json(asked["usage"]),
        )
        pieces: dict[str, JsonValue] = {}
        return StepAnswer(
            Parts(self._redactor, pieces.__setitem__).digest_of_message(wanted), pieces
        )

    async def _read(self, step: DescribedStep) -> StepAnswer:
        probe = ReadProbe(step.kind, self._redactor.restored(step.name), self._redactor)
        with entered(probe.top):
            if step.name.startswith(HISTORY_FILES):
                await self._history_files(step.name.removeprefix(HISTORY_FILES))
            else:
                await self._read_of_agent(self._reader(step), step.name, probe)
        if not probe.has_answer:
            raise RunError(f"`{step.name}` cannot be read by a worker")
        return StepAnswer(probe.gave, probe.pieces)

    def _reader(self, step: DescribedStep) -> LlmAgent:
        """Return the agent that a question is about, which may be asked outside of its turns."""
        name = step.agent
        for prefix in ("servers of ", "tools for skills of ", "skills of "):
            if step.name.startswith(prefix):
                name = step.name.removeprefix(prefix)
        return self._agent(name)

    async def _read_of_agent(self, agent: LlmAgent, name: str, probe: ReadProbe) -> None:
        """Run an agent up to its first model request, so that it asks everything before it."""
        await agent.setup.tools.table()
        if not probe.has_answer:
            server, _, uri = name.partition(" ")
            if uri and server in agent.config.servers:
                await agent.read_resource(server, uri)
            else:
                await agent.setup.render()

    async def _history_files(self, child: str) -> None:
        config = self._runtime.agent(child).config
        paths = history_files(config, self._workspace)
        source: Source = StepSource(child, HistoryFiles(paths, reads_of(config)))
        await source(ChildCallBatch(Transcript(), log.warning))

    def _agent(self, name: str) -> LlmAgent:
        agent = self._runtime.agent(name)
        if not isinstance(agent, LlmAgent):
            raise RunError(f"agent `{name}` has no tools of its own")
        return agent


def _ignore(event: Event) -> None:
    """Listen to nothing."""


class TurnEvents:
    """The events of a turn, for a listener: in a `with` block, whose failure is one of them.

    Args:
        origin: The turn.
        listener: The listener, or None.
    """

    def __init__(self, origin: Origin, listener: Listener | None) -> None:
        self._origin = origin
        self._listener = listener or _ignore

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            reason = "error" if isinstance(error, Exception) else "cancelled"
            self.notify(TurnFinished, reason, None, Usage(), Usage(), str(error))

    def notify(self, kind: Callable[..., Event], *facts: object) -> None:
        """Notify the listener of an event."""
        self._listener(kind(self._origin, *facts))


class ReadProbe(NullSteps):
    """Steps that ask everything, and keep the answer to one question.

    Args:
        kind: The kind of the question.
        name: Its name.
        redactor: What is hidden in the answer.

    Attributes:
        has_answer: Whether the question was asked.
        gave: The answer.
        pieces: The parts it names.
    """

    def __init__(self, kind: Kind, name: JsonValue, redactor: StepRedactor) -> None:
        self._wanted = kind, name
        self.pieces: dict[str, JsonValue] = {}
        self._parts = Parts(redactor, self.pieces.__setitem__)
        self._places = Places(self, self._parts)
        self.has_answer = False
        self.gave: JsonValue = None

    @property
    def parts(self) -> Parts:
        """The pieces of answers."""
        return self._parts

    @property
    def places(self) -> Places:
        """The places of what is asked."""
        return self._places

    @property
    def top(self) -> Place:
        """Where everything is asked."""
        return self._places.top

    async def ask(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Ask the outside."""
        answer = await work()
        if (step.kind, step.name) == self._wanted and not self.has_answer:
            self.pieces.clear()
            self.gave = codec.write(answer)
            self.has_answer = True
        return answer

    def part(self, digest: str) -> JsonValue:
        """Return a piece of an answer."""
        return self.pieces[digest]


class EditionSteps(NullSteps):
    """The carrier of a runtime whose runs have separate carriers: it knows the facts.

    Args:
        facts: What was true of the machine that made the edition.
        replays: Whether the runtime only decides, and never asks a model itself.
        add: Called with a fact that is not known yet; None takes it from this machine.
    """

    def __init__(
        self,
        facts: Mapping[str, str],
        *,
        replays: bool = False,
        add: Callable[[str, str], None] | None = None,
    ) -> None:
        self._facts = facts
        self._replays = replays
        self._add = add

    @property
    def replays(self) -> bool:
        """Whether no model is asked here."""
        return self._replays

    def fact(self, name: str, value: Callable[[], str]) -> str:
        """Return what was true when the edition was made."""
        known = self._facts.get(name)
        if known is None:
            known = value()
            if self._add is not None:
                self._add(name, known)
        return known


def part_digests(asked: JsonValue) -> Sequence[str]:
    """Return the digests a question names directly; lines of messages lead to further ones."""
    if not isinstance(asked, Mapping) or "messages" not in asked:
        return ()
    return [
        value for key, value in asked.items() if isinstance(value, str) and key != "model" and value
    ]


def next_digests(part: JsonValue) -> Sequence[str]:
    """Return the digests that a joint of a line of messages names."""
    # By its size first: it is asked of every part of a conversation before each model request.
    if isinstance(part, dict) and len(part) == 2 and part.keys() == {"after", "message"}:
        return [str(value) for value in part.values() if value]
    return ()
