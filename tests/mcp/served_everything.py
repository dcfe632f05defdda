"""A real MCP server over HTTP, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Generator

SERVER = Path(__file__).parent / "servers/everything.py"


@contextmanager
def served_everything(transport: Literal["http", "sse"] = "http") -> Generator[str]:
    """Serve it, and give its address."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER), transport], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as lines:
        try:
            port = int(lines.readline())
            yield f"http://127.0.0.1:{port}/{'mcp' if transport == 'http' else 'sse'}"
        finally:
            process.kill()
            process.wait()
