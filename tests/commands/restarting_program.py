"""A program with a controller that begins again once; run by `test_restart.py`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import anyio

from fast_agent.app import FastAgent
from fast_agent.commands.controller import ConversationController, restart
from fast_agent.commands.table import run_command
from fast_agent.sessions.store import SessionStore

STARTS: list[int] = []
"""What a module keeps; a program that began again has it empty."""


async def sit(directory: Path, resumed: str | None) -> str | None:
    """Talk once, and give the session to go on with; None where this is the second start."""
    program = FastAgent(cwd=directory, environ={"FAST_AGENT_HOME": str(directory / "home")})
    program.load_agents(directory / "cards")
    store = SessionStore(directory / "home")
    session = store.create(cwd=directory) if resumed is None else store.open(resumed)
    STARTS.append(os.getpid())
    async with program.run(grows=True) as app:
        controller = ConversationController(program, app, sessions=store, session=session)
        try:
            answer = await controller.instance().send('***CALL_TOOL count {"by": 1}')
            said = [one.text for one in controller.instance().history if one.role == "assistant"]
            facts = {
                "pid": os.getpid(),
                "starts": len(STARTS),
                "answer": answer,
                "said": [text for text in said if text],
                "session": session.id,
                "arguments": sys.argv[1:],
            }
            print(json.dumps(facts))
            result = await run_command("/reload --force", controller)
            return session.id if result.restart and resumed is None else None
        finally:
            await controller.aclose()


if __name__ == "__main__":
    named = sys.argv.index("--resume") if "--resume" in sys.argv else None
    again = anyio.run(sit, Path(sys.argv[1]), None if named is None else sys.argv[named + 1])
    if again is not None:
        restart(again)
