"""The least a pass over a directory of cards can do."""

from __future__ import annotations

import os


def look(directory: str) -> None:
    """List a directory and ask for the state of each file."""
    folder = os.open(directory, os.O_RDONLY)
    try:
        for name in os.listdir(folder):  # noqa: PTH208
            os.stat(name, dir_fd=folder)
    finally:
        os.close(folder)
