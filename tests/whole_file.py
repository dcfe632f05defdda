"""Files written at once: whoever looks meanwhile sees the old text or the new one, never a part."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file as a careful editor does, with what is not finished out of everyone's sight.

    Args:
        path: Somewhere below the directory of temporary files, as all that tests write is.
        text: What it is to hold.
    """
    handle, unfinished = tempfile.mkstemp()
    with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 - it is open already
        file.write(text)
    os.chmod(unfinished, 0o644)  # noqa: PTH101
    Path(unfinished).replace(path)
