"""A world of parents and children in which everything that can go wrong does, in any order.

An episode plays turns of a parent whose children answer, call tools, fail, hang or are cancelled,
as its seed draws it; `problems` compares every history with a model of what it should hold. Nothing
here looks at how histories are routed: the model knows what each child said, and the table of the
five words.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint
from tests.agents.history_values import (
    CANCELLED,
    DIRECT,
    EARLIER,
    FAILED,
    FILE,
    MAX_STEPS,
    WAYS,
    Ask,
    Said,
    look,
    said,
    strict_problem,
    without_direct,
)
from tests.patience import pass_seconds

from fast_agent.agents.runtime_options import RuntimeOptions
from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card import Card
from fast_agent.cards.load_set import LoadSet
from fast_agent.config.settings import Settings
from fast_agent.errors import ModelError
from fast_agent.messages.file import HistoryDocument, read_history, write_history
from fast_agent.messages.history import check_validity
from fast_agent.messages.message import Message, ToolCall
from fast_agent.models.model import ModelResponse, Usage
from fast_agent.runtime.runtime import BUILDERS, Runtime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from fast_agent.cards.agent_config import HistorySource, HistoryTarget
    from fast_agent.models.model import DeltaSink, ModelRequest
    from fast_agent.runtime.blueprint import Blueprint, Builder
    from fast_agent.runtime.context import RuntimeContext


@dataclass(slots=True)
class Gate:
    """Where a child waits until it may go on."""

    open: anyio.Event = field(default_factory=anyio.Event)


class Episode:
    """One parent, its children, and some turns.

    Args:
        source: What children start with.
        target: Where their messages go.
        directory: Where history files are.
        random: Draws everything that is left to chance.
    """

    def __init__(
        self, source: HistorySource, target: HistoryTarget, directory: Path, random: Random
    ) -> None:
        self.source: HistorySource = source
        self.target: HistoryTarget = target
        self.directory = directory
        self.random = random
        self.problems: list[str] = []
        self.asks: dict[int, Ask] = {}
        self._gates: list[Gate] = []
        self._rounds: list[list[Ask]] = []
        self._done = False
        self._begun = False
        self._speaks = False
        self._spoken = 0

    async def play(self, turns: int) -> list[str]:
        """Play some turns and look at everything after each.

        Returns:
            What was not as it should be.
        """
        self._runtime = self._make_runtime()
        async with self._runtime as runtime:
            self._parent = runtime.agent("boss")
            for name in ("kid", "ant"):
                runtime.agent(name).load_history(EARLIER)
            for number in range(turns):
                await self._turn(number)
                if self.problems:
                    break
        return self.problems

    def _make_runtime(self) -> Runtime:
        children: list[AgentConfig] = []
        for name in ("kid", "ant"):
            path = self.directory / f"{name}.json"
            if "messages" in (self.source, self.target):
                write_history(path, HistoryDocument(None, FILE))
            files = (path.name,) if path.exists() else ()
            child = AgentConfig(name=name, instruction="Work.", messages=files, model="passthrough")
            children.append(
                replace(child, function_tools=(look,), source=self.directory / f"{name}.md")
            )
        parent = AgentConfig(
            name="boss",
            instruction="Lead.",
            model="passthrough",
            agents=("kid", "ant"),
            history_source=self.source,
            history_merge_target=self.target,
            max_parallel=self.random.choice((None, None, 1, 2)),
            child_timeout_sec=60 if self.random.random() < 0.1 else None,
        )
        self._timeout = parent.child_timeout_sec
        cards = [Card(config, f"{config.name}.md") for config in (parent, *children)]
        builders = {name: self._with_models(make) for name, make in BUILDERS.items()}
        options = RuntimeOptions(workspace=self.directory, environ={})
        return Runtime(LoadSet.of(cards), Settings(), options, builders=builders)

    def _with_models(self, make: Builder) -> Builder:
        def build(card: Card, context: RuntimeContext) -> Blueprint:
            return make(card, replace(context, models=self))

        return build

    def create(
        self,
        text: str,
        *,
        agent: str = "",
        api_key: str | None = None,
        directory: Path | None = None,
        new_call_id: Callable[[], str] | None = None,
    ) -> EpisodeModel:
        """Make the model of an agent."""
        del text, api_key, directory, new_call_id
        return EpisodeModel(self, agent)

    async def _turn(self, number: int) -> None:
        """Play one turn of the parent, let go of its children in any order, and compare."""
        random = self.random
        before = self._state()
        rounds = [self._round() for _ in range(random.choice((1, 1, 2)))]
        self._rounds = list(rounds)
        cancel_at = random.randint(0, 40) if random.random() < 0.3 else MAX_STEPS
        late_at = random.randint(0, 60)
        hangs = any(ask.way.startswith("hang") for asks in rounds for ask in asks)
        if hangs and self._timeout is None:
            cancel_at = min(cancel_at, random.randint(20, 60))
        self._done = self._begun = False
        async with anyio.create_task_group() as group:
            group.start_soon(self._send, number, group.cancel_scope)
            if random.random() < 0.3:
                group.start_soon(self._speak, number)
            for step in range(MAX_STEPS):
                if self._done and not self._gates:
                    break
                if step >= cancel_at:
                    group.cancel_scope.cancel()
                    break
                if self._timeout is not None and step % 400 == late_at:
                    pass_seconds(self._timeout)
                if self._gates and random.random() < 0.5:
                    self._gates.pop(random.randrange(len(self._gates))).open.set()
                # Threads that read and write files need time to pass.
                await (checkpoint() if step < 200 else anyio.sleep(0.001))
        self._gates.clear()
        self._compare(number, before, rounds)

    def _round(self) -> list[Ask]:
        """Draw the calls of one message of the parent."""
        random = self.random
        asks: list[Ask] = []
        for _ in range(random.randint(1, 3)):
            way = random.choices(WAYS, (6, 4, 1, 1, 1, 1))[0]
            ask = Ask(len(self.asks), random.choice(("kid", "ant")), way)
            self.asks[ask.number] = ask
            asks.append(ask)
        return asks

    async def _send(self, number: int, scope: anyio.CancelScope) -> None:
        """Run the parent's turn; sometimes its end cancels whatever else is under way."""
        try:
            await self._parent.send(f"turn {number}")
        finally:
            self._done = True
            if self.random.random() < 0.5:
                scope.cancel()

    async def _speak(self, number: int) -> None:
        """Let a person have a turn with a child meanwhile."""
        self._speaks = True
        try:
            await self._runtime.agent("kid").send(f"{DIRECT} {number}")
            self._spoken += 1
        finally:
            self._speaks = False

    async def answer(self, model: EpisodeModel, request: ModelRequest) -> Message:
        """Answer a request as the parent or one of the children."""
        self._check_request(model.agent, request)
        if model.agent == "boss":
            self._begun = True
            return self._lead()
        heard = request.messages[-1].text.rpartition("\n")[2]
        if heard.startswith(DIRECT):
            await self._wait()
            return Message.assistant(f"{DIRECT} answer")
        ask = model.ask
        if ask is None:
            ask = model.ask = self.asks[int(heard.removeprefix("ask "))]
            ask.base = tuple(request.messages)
            ask.busy = self._speaks
        late = bool(ask.answers)
        await self._wait()
        if ask.way == ("hang late" if late else "hang"):
            await anyio.sleep_forever()
        if ask.way == ("fail late" if late else "fail"):
            raise ModelError("broken")
        if ask.way in {"look", "fail late", "hang late"} and not late:
            answer = Message("assistant", (), (ToolCall("call_1", "look"),), stop_reason="toolUse")
        else:
            answer = Message.assistant(f"answer {ask.number}")
            ask.finished = True
        ask.answers.append(answer)
        return answer

    async def _wait(self) -> None:
        gate = Gate()
        self._gates.append(gate)
        await gate.open.wait()

    def _lead(self) -> Message:
        if not self._rounds:
            return Message.assistant("done")
        asks = self._rounds.pop(0)
        calls = tuple(
            [
                ToolCall(f"call_{index}", f"agent__{ask.child}", {"message": ask.text})
                for index, ask in enumerate(asks)
            ]
        )
        return Message("assistant", (), calls, stop_reason="toolUse")

    def _check_request(self, agent: str, request: ModelRequest) -> None:
        problem = strict_problem(request.messages)
        if problem is not None:
            self.problems.append(f"a request of `{agent}` is not valid: {problem}")

    def _state(self) -> dict[str, list[Said]]:
        """Return everything that can hold messages, as the model sees it."""
        runtime = self._runtime
        state = {
            "boss": list(map(said, runtime.agent("boss").history)),
            "transcript": [
                said(one) for entry in runtime.transcript.entries for one in entry.messages
            ],
        }
        for name in ("kid", "ant"):
            state[name] = list(map(said, runtime.agent(name).history))
            path = self.directory / f"{name}.json"
            if path.exists():
                state[f"{name}.json"] = list(map(said, read_history(path).messages))
        return state

    def _compare(self, number: int, before: dict[str, list[Said]], rounds: list[list[Ask]]) -> None:
        """Compare what everything holds after a turn with what it should hold."""
        after = self._state()
        for name in ("boss", "kid", "ant"):
            self.problems += [
                f"history of `{name}`: {one}"
                for one in check_validity(self._runtime.agent(name).history)
            ]
        own = after["boss"][len(before["boss"]) :]
        asks = [ask for one in rounds for ask in one]
        blocks = {ask.number: self._block(ask) for ask in asks}
        turn = self._own_turn(number, own, rounds)
        expected: dict[str, list[Said]] = {"boss": [*before["boss"], *turn]}
        for place in after.keys() - {"boss", "transcript"}:
            expected[place] = list(before[place])
        for ask in asks:
            block = blocks[ask.number]
            place = {"orchestrator": "boss", "child": ask.child, "messages": f"{ask.child}.json"}
            if self.target in place:
                expected[place[self.target]] += block
        for place, wanted in expected.items():
            if without_direct(after[place]) != without_direct(wanted):
                self.problems.append(
                    f"turn {number}: `{place}` should hold {wanted}, and holds {after[place]}"
                )
        new = after["transcript"][len(before["transcript"]) :]
        in_order = [one for ask in asks for one in blocks[ask.number]] + turn
        if without_direct(new) != in_order:
            self.problems.append(
                f"turn {number}: the transcript should go on with {in_order}, and does with {new}"
            )
        spoken = after["kid"].count(("assistant", f"{DIRECT} answer", 0, 0))
        if spoken != self._spoken:
            self.problems.append(f"turn {number}: {self._spoken} turns with `kid`, {spoken} kept")
        self._compare_bases(before, turn, rounds)

    def _compare_bases(
        self, before: dict[str, list[Said]], turn: list[Said], rounds: list[list[Ask]]
    ) -> None:
        """Compare what each child started with, with what the table says."""
        makers = [index for index, one in enumerate(turn) if one[2]]
        earlier: list[Ask] = []
        for index, asks in enumerate(rounds):
            for ask in asks:
                if ask.base is None:
                    continue
                heard = before["boss"] + turn[: makers[index]]
                wanted = {"none": [], "orchestrator": heard}.get(self.source)
                if wanted is None:
                    wanted = self._place_before(ask, before, earlier)
                texts = [text for _, text, _, _ in wanted if text]
                seen = [line for one in ask.base for line in one.text.split("\n") if line]
                begun, wanted_texts = without_direct(seen), without_direct([*texts, ask.text])
                # What was merged while a person talks to the child lands behind that turn.
                if self.source == "child" and ask.busy:
                    wanted_texts = [*wanted_texts[: len(begun) - 1], ask.text]
                if begun != wanted_texts:
                    self.problems.append(f"{ask.text} started with {seen}, not with {texts}")
            earlier += asks

    def _place_before(
        self, ask: Ask, before: dict[str, list[Said]], earlier: list[Ask]
    ) -> list[Said]:
        """Return what the place a child starts from held when the child was called."""
        name = {"child": ask.child, "messages": f"{ask.child}.json"}.get(self.source, "transcript")
        wanted = list(before[name])
        for other in earlier:
            goes = self.target == self.source and other.child == ask.child
            if goes or self.source == "cumulative":
                wanted += self._block(other)
        return wanted

    def _block(self, ask: Ask) -> list[Said]:
        """Return what a child's own history would keep of a call."""
        if ask.base is None:
            return []
        block: list[Said] = [("user", ask.text, 0, 0)]
        for answer in ask.answers:
            block.append(said(answer))
            if answer.tool_calls:
                block.append(("user", "", 0, 1))
        if ask.finished:
            return block
        if ask.way == "fail" and not self._was_cut(ask):
            return []
        failed = ask.way in {"fail", "fail late"} and not self._was_cut(ask)
        return [*block, FAILED if failed else CANCELLED]

    def _was_cut(self, ask: Ask) -> bool:
        """Whether a call was cancelled or ran out of time, by the result the parent has of it."""
        result = self._results.get(ask.number, "cancelled")
        return "broken" not in result

    @property
    def _results(self) -> dict[int, str]:
        """The results of all calls so far, by the number of the ask."""
        numbers: dict[str, int] = {}
        results: dict[int, str] = {}
        for message in self._parent.history:
            for call in message.tool_calls:
                asked = str(call.arguments.get("message", ""))
                if asked.startswith("ask "):
                    numbers[call.id] = int(asked.removeprefix("ask "))
            for result in message.tool_results:
                if result.id in numbers:
                    results[numbers[result.id]] = result.text
        return results

    def _own_turn(self, number: int, own: list[Said], rounds: list[list[Ask]]) -> list[Said]:
        """Return the parent's own turn; it ends with the first answer that calls nothing."""
        if not own and not self._begun:
            return []
        end = next((i for i, one in enumerate(own) if one[0] == "assistant" and not one[2]), None)
        if end is None:
            self.problems.append(f"turn {number} does not end: {own}")
            return own
        turn = own[: end + 1]
        sizes = [len(asks) for asks in rounds]
        made = [calls for _, _, calls, _ in turn if calls]
        if turn[0] != ("user", f"turn {number}", 0, 0) or made != sizes[: len(made)]:
            self.problems.append(f"turn {number} is not what was played: {turn}")
        return turn


class EpisodeModel:
    """The model of one instance."""

    def __init__(self, episode: Episode, agent: str) -> None:
        self.agent = agent
        self.ask: Ask | None = None
        self._episode = episode

    @property
    def name(self) -> str:
        """What it is called."""
        return "episode"

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Answer as the episode says."""
        del on_delta
        return ModelResponse(await self._episode.answer(self, request), Usage(1, 1, 0, 0, 1))

    async def aclose(self) -> None:
        """Do nothing."""
