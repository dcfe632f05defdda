from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.tools.tool import agent_tool_name, function_tool_name, server_tool_name

PROVIDERS_TAKE = re.compile(r"[A-Za-z0-9_-]{1,64}")

awkward = st.text(alphabet="ab_-. é/", max_size=6) | st.text(max_size=100)
hash_like = st.from_regex(r"\A[ab_]{0,60}_[0-9a-f]{10}\Z")
part = awkward | hash_like | st.sampled_from(["agent", "a" * 64, "a" * 80])


@pytest.mark.spec("TOOL-1")
@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("time", "get_current_time", "time__get_current_time"),
        ("my-files", "read__all", "my-files__read__all"),
        ("s", "x" * 61, "s__" + "x" * 61),
    ],
)
def test_a_name_that_fits_stays_as_it_is(server: str, tool: str, name: str) -> None:
    assert server_tool_name(server, tool) == name


@pytest.mark.spec("CARD-82")
def test_an_agents_name_keeps_its_prefix() -> None:
    assert agent_tool_name("NY-Project-Manager") == "agent__NY-Project-Manager"
    assert agent_tool_name("My Agent").startswith("agent__My_Agent_")


@pytest.mark.spec("TOOL-1")
def test_a_long_name_is_cut_and_ends_in_a_hash_that_never_changes() -> None:
    name = server_tool_name("server", "t" * 100)
    assert name == "server__" + "t" * 45 + "_374ec3663a"
    assert name != server_tool_name("server", "t" * 101)


def test_pairs_that_read_alike_get_different_names() -> None:
    assert server_tool_name("a_", "b") != server_tool_name("a", "_b")
    assert server_tool_name("a.b", "c") != server_tool_name("a_b", "c")
    assert server_tool_name("agent", "x") != agent_tool_name("x")
    assert server_tool_name("a", "b") != function_tool_name("a__b")


def test_a_server_cannot_take_the_hashed_name_of_another_tool() -> None:
    cut = server_tool_name("server", "t" * 100)
    assert server_tool_name("server", cut.removeprefix("server__")) != cut


@pytest.mark.spec("TOOL-1")
@given(st.lists(st.tuples(part, part), max_size=30))
def test_names_are_fit_for_providers_and_never_meet(pairs: list[tuple[str, str]]) -> None:
    names: dict[str, tuple[str, ...]] = {}
    for server, tool in pairs:
        for meaning, name in (
            (("server", server, tool), server_tool_name(server, tool)),
            (("agent", server), agent_tool_name(server)),
            (("function", tool), function_tool_name(tool)),
        ):
            assert PROVIDERS_TAKE.fullmatch(name)
            assert names.setdefault(name, meaning) == meaning
