"""The client that the official conformance scenarios of skills are run with.

Run: `python tests/conformance/client.py URL`; the suite names the scenario in the environment.
It finds skills as every agent does. Where the scenario is not about finding alone, it has them
loaded and their files read by the tools an agent has, and answers 1 where any of that was refused.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import anyio

from fast_agent.mcp.pool import ServerPool
from fast_agent.mcp.server import HttpTarget, ServerSpec
from fast_agent.mcp.skills import ServerSkills
from fast_agent.messages.message import ToolCall
from fast_agent.resources.skill_client.catalog import SkillCatalog
from fast_agent.tools.skills.gate import APPROVALS_FILE, SkillApprovals, SkillGate
from fast_agent.tools.skills.tools import LOAD, READ, SkillTools
from fast_agent.tools.tool import ToolContext
from fast_agent.tools.toolbox import ServerFilter

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")


async def use(url: str, home: Path) -> int:
    """Find skills, and use them where the scenario is about that."""
    async with ServerPool([ServerSpec(name="suite", target=HttpTarget(url=url))]) as pool:
        source = ServerSkills(pool.connection("suite"), ServerFilter(), anyio.current_time)
        gate = SkillGate(None, SkillApprovals(home / APPROVALS_FILE))
        catalog = SkillCatalog([source])
        offered = SkillTools(catalog, gate, describe=True)
        tools = {tool.spec.name: tool for tool in await offered.tools()}
        skills = await catalog.scan()
        print(catalog.block())
        if SCENARIO.endswith("no-prefetch"):
            return 0 if skills else 1
        context = ToolContext(agent_name="a", turn_id="t", call_id="c", correlation_id="c")
        refused = 0
        for skill in skills:
            calls = [ToolCall("c", LOAD, {"name": skill.name})]
            calls += [
                ToolCall("c", READ, {"skill": skill.name, "path": path})
                for path in skill.entry.files or ()
            ]
            for call in calls:
                result = await tools[call.name].call(call, context)
                print(result.text)
                refused += result.is_error
        return 1 if refused else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(anyio.run(use, sys.argv[1], Path(folder)))
