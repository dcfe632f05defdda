from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from fast_agent.messages.message import TextContent, ToolCall, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.tools.toolbox import Toolbox, ToolTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.tools.tool import Tool, ToolContext, ToolSource


@dataclass
class Echo:
    name: str
    source: ToolSource = "function"
    server_name: str | None = None
    repeatable: bool = True

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, "", {"type": "object"})

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        return ToolResult(call.id, (TextContent(self.name),))


class Changing:
    def __init__(self, tools: Sequence[Tool]) -> None:
        self.now = tools

    async def tools(self) -> Sequence[Tool]:
        return self.now


@pytest.mark.spec("CARD-87")
def test_the_first_tool_of_a_name_keeps_it_and_the_other_is_reported() -> None:
    first, second = Echo("a"), Echo("a", "mcp", "s")
    reports: list[tuple[Tool, Tool]] = []
    table = ToolTable([first, Echo("b"), second], lambda kept, lost: reports.append((kept, lost)))
    assert table["a"] is first
    assert [spec.name for spec in table.specs] == ["a", "b"]
    assert list(table) == ["a", "b"]
    assert len(reports) == 1
    assert reports[0][0] is first
    assert reports[0][1] is second


@pytest.mark.parametrize(
    ("names", "called", "words"),
    [
        (["time__get_time", "files__read"], "time__get_tme", "did you mean `time__get_time`?"),
        (["add", "files__read"], "nothing_like_it", "available tools: `add`, `files__read`"),
        ([], "add", "there are no tools"),
    ],
)
def test_an_unknown_tool_names_what_there_is(names: list[str], called: str, words: str) -> None:
    result = ToolTable([Echo(name) for name in names]).unknown(ToolCall("1", called))
    assert result.is_error
    assert result.id == "1"
    assert f"`{called}`" in result.text
    assert words in result.text


@pytest.mark.anyio
async def test_the_table_is_made_anew_only_when_a_toolset_changed() -> None:
    changing, still = Changing([Echo("b")]), Changing([Echo("c")])
    box = Toolbox([Echo("a")], [changing, still])
    before = await box.table()
    assert list(before) == ["a", "b", "c"]
    assert await box.table() is before
    changing.now = [Echo("d")]
    after = await box.table()
    assert list(after) == ["a", "d", "c"]
    assert list(before) == ["a", "b", "c"]


@pytest.mark.anyio
async def test_a_duplicate_is_reported_once_however_often_the_table_is_made() -> None:
    changing = Changing([Echo("a", "mcp", "s")])
    lost: list[Tool] = []
    box = Toolbox([Echo("a")], [changing], lambda _kept, dropped: lost.append(dropped))
    await box.table()
    changing.now = list(changing.now)
    await box.table()
    assert [tool.source for tool in lost] == ["mcp"]


@pytest.mark.anyio
async def test_without_toolsets_there_is_one_table() -> None:
    box = Toolbox([Echo("a")])
    assert await box.table() is await box.table()
    assert list(await box.table()) == ["a"]
