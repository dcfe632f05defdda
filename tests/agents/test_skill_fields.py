"""The fields `model` and `context` of skills that were given: obeyed in the turn that uses one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.agents.events import ModelRequested, Warned
from fast_agent.agents.runtime_options import RuntimeOptions
from fast_agent.cards.agent_config import NO_PARAMS, AgentConfig, RequestParams, UsageLimits
from fast_agent.cards.card import Card
from fast_agent.cards.load_set import LoadSet
from fast_agent.config.settings import Settings
from fast_agent.runtime.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.agents.events import Event

pytestmark = pytest.mark.anyio

LOAD = '***CALL_TOOL load_skill {"name": "maker"}'


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> Callable[..., Runtime]:
    def make(
        *fields: str,
        heard: list[Event] | None = None,
        max_depth: int = 5,
        params: RequestParams = NO_PARAMS,
    ) -> Runtime:
        folder = tmp_path / "home/.agents/skills/maker"
        folder.mkdir(parents=True)
        head = "\n".join(("name: maker", "description: Makes.", *fields))
        (folder / "SKILL.md").write_text(f"---\n{head}\n---\nMake $ARGUMENTS.\n")
        (tmp_path / "work").mkdir()
        (tmp_path / "work/quick.yaml").write_text("steps: [{text: from quick}]\n")
        config = AgentConfig(
            name="alice", instruction="Be brief.", model="passthrough", request_params=params
        )
        options = RuntimeOptions(
            workspace=tmp_path / "work",
            environ={"HOME": str(tmp_path / "home")},
            listener=None if heard is None else heard.append,
            max_depth=max_depth,
        )
        settings = Settings(model_aliases={"quick": "scripted?file=quick.yaml"})
        return Runtime(LoadSet.of([Card(config, "alice.md")]), settings, options)

    return make


def models(heard: list[Event]) -> list[str]:
    return [one.model.partition("?")[0] for one in heard if isinstance(one, ModelRequested)]


async def test_the_model_of_a_loaded_skill_answers_for_the_rest_of_the_turn(
    run: Callable[..., Runtime],
) -> None:
    heard: list[Event] = []
    async with run("model: quick", heard=heard) as runtime:
        assert await runtime.default.send(LOAD) == "from quick"
        assert await runtime.default.send("hi") == "hi"
    assert models(heard) == ["passthrough", "scripted", "passthrough"]


async def test_the_model_of_a_skill_that_a_person_calls(run: Callable[..., Runtime]) -> None:
    async with run("model: quick") as runtime:
        skill = await runtime.call_skill("alice", "maker", "socks")
        assert skill is not None
        assert (await runtime.default.generate(skill.text, skill=skill)).text == "from quick"
        assert await runtime.default.send("hi") == "hi"


@pytest.mark.parametrize("model", ["inherit", "quick?x=y", "[quick]", "''"])
async def test_models_that_are_not_taken(run: Callable[..., Runtime], model: str) -> None:
    heard: list[Event] = []
    async with run(f"model: {model}", heard=heard) as runtime:
        assert "Make $ARGUMENTS." in await runtime.default.send(LOAD)
    assert set(models(heard)) == {"passthrough"}


async def test_a_model_that_cannot_be_asked_is_reported(run: Callable[..., Runtime]) -> None:
    heard: list[Event] = []
    async with run("model: no-such-model", heard=heard) as runtime:
        assert "Make $ARGUMENTS." in await runtime.default.send(LOAD)
    (said,) = [one.message for one in heard if isinstance(one, Warned)]
    assert said.startswith("`passthrough` answers in place of the skill's model `no-such-model`:")


async def test_a_model_without_a_price_is_not_asked_where_money_is_bounded(
    run: Callable[..., Runtime],
) -> None:
    heard: list[Event] = []
    bounded = RequestParams(usage_limits=UsageLimits(max_cost=1.0))
    async with run("model: generic.secret-model", heard=heard, params=bounded) as runtime:
        assert "Make $ARGUMENTS." in await runtime.default.send(LOAD)
    (said,) = [one.message for one in heard if isinstance(one, Warned)]
    assert said.endswith("`generic.secret-model`: `max_cost` is set, and its price is not known")
    assert set(models(heard)) == {"passthrough"}


async def test_a_skill_that_forks_leaves_only_its_answer(run: Callable[..., Runtime]) -> None:
    async with run("context: fork") as runtime:
        alice = runtime.default
        said = await alice.send('***CALL_TOOL load_skill {"name": "maker", "arguments": "socks"}')
        assert said.startswith("the skill `maker` ran in a separate conversation")
        assert "Make socks." in said
        assert len(alice.history) == 4
        assert alice.tree_usage.requests == 3


async def test_a_fork_has_the_model_of_its_skill(run: Callable[..., Runtime]) -> None:
    heard: list[Event] = []
    async with run("context: fork", "model: quick", heard=heard) as runtime:
        assert (await runtime.default.send(LOAD)).endswith("from quick")
    assert models(heard) == ["passthrough", "scripted", "passthrough"]


async def test_a_fork_that_a_person_calls(run: Callable[..., Runtime]) -> None:
    async with run("context: fork") as runtime:
        skill = await runtime.call_skill("alice", "maker", "socks")
        assert skill is not None
        result = await runtime.default.generate("/maker socks", skill=skill)
        assert "Make socks." in result.text
        assert [one.text for one in runtime.default.history] == ["/maker socks", result.text]


async def test_forks_are_bounded(run: Callable[..., Runtime]) -> None:
    async with run("context: fork", max_depth=0) as runtime:
        assert "agents may call each other 0 deep at most" in await runtime.default.send(LOAD)


async def test_only_a_fork_takes_arguments(run: Callable[..., Runtime]) -> None:
    async with run("context: none") as runtime:
        said = await runtime.default.send(LOAD)
        assert said.startswith("<skill_content")
