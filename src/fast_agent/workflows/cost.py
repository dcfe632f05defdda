"""Cost: the most model requests and tool calls one turn of each agent of a card set can set off.

Bounds come from cards and configuration alone: nothing is run, and code of function tools and
hooks is not read. They hold whatever models answer, so they are far above what a sensible run
uses; what they are for is to know that there is a bound, and which setting makes it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

from fast_agent.agents.agent_skills import directories_of
from fast_agent.agents.runtime_options import MAX_DEPTH
from fast_agent.agents.turn_context import MAX_WITHOUT_TOOLS
from fast_agent.cards.agent_config import NO_PARAMS, RequestParams
from fast_agent.cards.load_set import agents_below
from fast_agent.config.settings import MAX_ITERATIONS
from fast_agent.text.frozen import frozen
from fast_agent.workflows.maker.calibration import usual_samples
from fast_agent.workflows.plan import MAX_TASKS
from fast_agent.workflows.planning import most_plans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.config.settings import Settings


@frozen
class Bound:
    """The most there can be of something.

    Args:
        most: How many; None where there is no bound.
        reasons: What makes it unbounded, and which setting would end that; empty where it is not.
    """

    most: int | None = 0
    reasons: tuple[str, ...] = ()

    def __add__(self, other: Bound) -> Bound:
        reasons = tuple(dict.fromkeys(self.reasons + other.reasons))
        if self.most is None or other.most is None:
            return Bound(None, reasons)
        return Bound(self.most + other.most)

    def __mul__(self, times: Bound) -> Bound:
        """Return what so many of these come to; nothing where there is none of either."""
        if self.most == 0 or times.most == 0:
            return NOTHING
        if self.most is None or times.most is None:
            return Bound(None, tuple(dict.fromkeys(self.reasons + times.reasons)))
        return Bound(self.most * times.most)

    def limited(self, limit: int | None) -> Bound:
        """Return the smaller of this and a limit."""
        if limit is None or (self.most is not None and self.most <= limit):
            return self
        return Bound(limit)


NOTHING: Final = Bound()


@frozen
class Cost:
    """What one turn can set off, everything below it included.

    Args:
        requests: Model requests.
        calls: Tool calls.
    """

    requests: Bound = NOTHING
    calls: Bound = NOTHING

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.requests + other.requests, self.calls + other.calls)

    def times(self, times: int | Bound) -> Cost:
        """Return what so many of these come to."""
        number = Bound(times) if isinstance(times, int) else times
        return Cost(self.requests * number, self.calls * number)


FREE: Final = Cost()


class CostPlan:
    """The worst case of each agent of a card set.

    Args:
        cards: All cards, by name; they were checked, so that they refer to each other in no ring.
        settings: The configuration.
        workspace: The directory of the program, where skills may be.
        max_depth: Deepest nesting of agents.
        shell: Whether every agent may run commands.
        follows_calls: Whether turns of agents that are called as tools count.
    """

    def __init__(
        self,
        cards: Mapping[str, Card],
        settings: Settings,
        workspace: Path,
        *,
        max_depth: int = MAX_DEPTH,
        shell: bool = False,
        follows_calls: bool = True,
    ) -> None:
        self._cards = cards
        self._settings = settings
        self._workspace = workspace
        self._max_depth = max_depth
        self._shell = shell
        self._known: dict[tuple[str, int], Cost] = {}
        self._uncalled: CostPlan | None = None
        if follows_calls:
            self._uncalled = CostPlan(
                cards, settings, workspace, max_depth=max_depth, shell=shell, follows_calls=False
            )

    def of(self, name: str, depth: int = 0) -> Cost:
        """Return the worst case of one turn.

        Args:
            name: The agent.
            depth: How many agents stand above it.
        """
        key = (name, depth)
        cost = self._known.get(key)
        if cost is None:
            config = self._cards[name].config
            params = self._params(config)
            cost = self._cost(config, depth)
            limits = params.usage_limits
            if limits is not None:
                called = self._by_calls(name, depth, limits.max_tool_calls)
                cost = Cost(
                    cost.requests.limited(called.most).limited(limits.max_requests),
                    cost.calls.limited(limits.max_tool_calls),
                )
            self._known[key] = cost
        return cost

    def _by_calls(self, name: str, depth: int, most_calls: int | None) -> Bound:
        """Bound the requests of a turn by the tool calls there may be in all that it starts.

        Every turn below is a part of a workflow's, or starts with a call. So no more turns start by
        calls than calls are allowed, however many agents stand between.
        """
        plan = self._uncalled
        if plan is None or most_calls is None:
            return Bound(None)
        below = [
            plan.of(one, depth + 1).requests for one in sorted(agents_below(self._cards, name))
        ]
        return plan.of(name, depth).requests + _max_bound(below) * Bound(most_calls)

    def _cost(self, config: AgentConfig, depth: int) -> Cost:
        match config.type:
            case "agent" | "smart":
                return self._agent(config, depth)
            case "chain":
                return self._chain(config, depth)
            case "parallel":
                return self._parallel(config, depth)
            case "router":
                return self._router(config, depth)
            case "evaluator_optimizer":
                return self._evaluator_optimizer(config, depth)
            case "orchestrator" | "iterative_planner":
                return self._planner(config, depth)
            case "MAKER":
                return self._maker(config, depth)
        assert_never(config.type)

    def _params(self, config: AgentConfig) -> RequestParams:
        return (config.request_params or NO_PARAMS).over(self._settings.request_params)

    def _member(self, name: str | None, depth: int) -> Cost:
        """Return the cost of a turn of a member; below the deepest nesting it is zero."""
        if name is None or name not in self._cards or depth >= self._max_depth:
            return FREE
        return self.of(name, depth + 1)

    def _dearest(self, names: tuple[str, ...], depth: int) -> Cost:
        """Return a cost that none of some members' turns exceeds."""
        costs = [self._member(name, depth) for name in names]
        return Cost(
            _max_bound([one.requests for one in costs]), _max_bound([one.calls for one in costs])
        )

    def _own_cost(self, config: AgentConfig) -> Cost:
        """Return what the model of an agent's card can use itself: requests and tool calls."""
        params = self._params(config)
        has_tools = self._has_tools(config)
        usual = MAX_ITERATIONS if has_tools else MAX_WITHOUT_TOOLS
        iterations = Bound(max(1, params.max_iterations or usual))
        limits = params.usage_limits
        most_calls = None if limits is None else limits.max_tool_calls
        calls = NOTHING
        if has_tools and iterations != Bound(1):
            calls = Bound(None, (_ANY_CALLS.format(name=config.name),)).limited(most_calls)
        asked = [name for name in config.servers if self._may_sample(name)]
        asked += [one.name or one.target for one in config.mcp_connect]
        requests = iterations
        if asked and calls != NOTHING:
            reason = _SAMPLING.format(name=config.name, server=asked[0])
            requests = requests + Bound(None, (reason,))
        return Cost(requests, calls)

    def _has_tools(self, config: AgentConfig) -> bool:
        if config.servers or config.mcp_connect or config.function_tools or config.agents:
            return True
        if config.type == "smart" or config.human_input or config.resource_tools:
            return True
        if config.shell or config.files or config.fetch or self._shell:
            return True
        directories, _ = directories_of(config, self._settings.skills, self._workspace)
        return any(map(_is_directory, directories))

    def _may_sample(self, server: str) -> bool:
        known = self._settings.mcp.servers.get(server)
        return known is None or known.sampling

    def _agent(self, config: AgentConfig, depth: int) -> Cost:
        own = self._own_cost(config)
        # Each call may be of the dearest child.
        below = self._dearest(config.agents, depth).times(own.calls)
        if self._uncalled is None:
            below = FREE
        if config.type == "smart" and own.calls != NOTHING:
            below = below + Cost(Bound(None, (_SMART.format(name=config.name),)))
        calls = own.calls + below.calls
        limits = self._params(config).usage_limits
        return Cost(
            own.requests + below.requests,
            calls if limits is None else calls.limited(limits.max_tool_calls),
        )

    def _chain(self, config: AgentConfig, depth: int) -> Cost:
        return _sum([self._member(name, depth) for name in config.sequence])

    def _parallel(self, config: AgentConfig, depth: int) -> Cost:
        branches = [self._member(name, depth) for name in config.fan_out]
        return _sum([*branches, self._member(config.fan_in, depth)])

    def _router(self, config: AgentConfig, depth: int) -> Cost:
        chosen = self._dearest(config.agents, depth)
        return chosen if len(set(config.agents)) == 1 else self._own_brain(config) + chosen

    def _evaluator_optimizer(self, config: AgentConfig, depth: int) -> Cost:
        generator = self._member(config.generator, depth)
        # A rating that cannot be read is asked for once more.
        evaluator = self._member(config.evaluator, depth).times(2)
        return (generator + evaluator).times(config.max_refinements + 1)

    def _planner(self, config: AgentConfig, depth: int) -> Cost:
        # Every plan but a last one has a task at least.
        plans = min(most_plans(config) or MAX_TASKS, MAX_TASKS)
        brain = self._own_brain(config)
        tasks = self._dearest(config.agents, depth).times(MAX_TASKS)
        return brain.times(plans + 1) + tasks

    def _maker(self, config: AgentConfig, depth: int) -> Cost:
        draws = config.max_samples
        if not isinstance(config.k, int):
            draws += config.calibration_samples or usual_samples(config.steps)
        return self._member(config.worker, depth).times(draws)

    def _own_brain(self, config: AgentConfig) -> Cost:
        """Return what a workflow's own model can use; it does not call the card's agents."""
        return self._own_cost(replace(config, agents=(), skills=(), type="agent"))


_ANY_CALLS: Final = (
    "the model of `{name}` may make any number of tool calls in one answer;"
    " set `request_params.usage_limits.max_tool_calls` of `{name}`"
)
_SAMPLING: Final = (
    "server `{server}` may ask for any number of model answers while `{name}` uses it;"
    " set `sampling: false` of the server, or `request_params.usage_limits.max_requests` of"
    " `{name}`"
)
_SMART: Final = (
    "`{name}` may run any cards it can reach; set `request_params.usage_limits.max_requests` of"
    " `{name}`"
)


def _sum(costs: list[Cost]) -> Cost:
    return reduce(add, costs, FREE)


def _max_bound(bounds: list[Bound]) -> Bound:
    """Return the largest of some bounds."""
    open_ones = [one for one in bounds if one.most is None]
    if open_ones:
        return reduce(add, open_ones)
    return Bound(max([one.most or 0 for one in bounds], default=0))


def _is_directory(path: str) -> bool:
    return Path(path).is_dir()
