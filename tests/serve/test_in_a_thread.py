"""A server started in a thread, which signals never reach: it ends when its task is cancelled."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from tests.patience import PATIENCE, wait_until

from fast_agent import FastAgent
from fast_agent.serve.agent_serving import ServeOptions, serve
from fast_agent.serve.http_access import HttpSettings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spec("LOOP-7")
def test_over_http(tmp_path: Path) -> None:
    program = FastAgent("test", cwd=tmp_path, environ={"HOME": str(tmp_path)}, ignore_config=True)
    program.agent("ann", model="passthrough")
    options = ServeOptions(http=HttpSettings(port=0), grace_seconds=0.1)
    ready: list[str] = []
    ends: list[str] = []
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def main() -> None:
        serving = asyncio.create_task(serve(program, options, ready=ready.append))
        loops.append((asyncio.get_running_loop(), serving))
        try:
            await serving
        except asyncio.CancelledError:
            ends.append("cancelled")
        except BaseException as error:
            ends.append(repr(error))
            raise

    thread = Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    wait_until(lambda: (ready and _answers(ready[0])) or ends)
    assert ends == []
    loop, serving = loops[0]
    loop.call_soon_threadsafe(serving.cancel)
    thread.join(PATIENCE)
    assert ends == ["cancelled"]


def _answers(address: str) -> bool:
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    try:
        urlopen(address, timeout=PATIENCE).close()
    except HTTPError:
        return True
    except (URLError, ConnectionError):
        return False
    return True


@pytest.mark.spec("LOOP-7")
def test_over_stdio(tmp_path: Path) -> None:
    program = """
import asyncio
from threading import Thread

from fast_agent import FastAgent
from fast_agent.serve.agent_serving import ServeOptions

fast = FastAgent("test", ignore_config=True)
fast.agent("ann", model="passthrough")
thread = Thread(target=lambda: asyncio.run(fast.serve(ServeOptions(transport="stdio"))))
thread.start()
thread.join()
"""
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}\n'
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
        input=ping,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["id"] == 1
