"""A real MCP server over HTTP, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

SERVER = Path(__file__).parent / "servers/everything.py"


@contextmanager
def served_everything() -> Generator[str]:
    """Serve it, and give its address."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER), "http"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as lines:
        port = int(lines.readline())
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()
        process.wait()
