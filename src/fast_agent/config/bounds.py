"""The default bounds of a run: what holds where neither a card nor a configuration says otherwise.

They stand below the rooms that keep them, since a found file that weakens one is an effect.
"""

from __future__ import annotations

from typing import Final

MAX_ITERATIONS: Final = 99
"""Model requests of one turn."""

SHELL_TIMEOUT_SECONDS: Final = 120.0
"""Longest run of one shell command."""

SHELL_OUTPUT_BYTES: Final = 32 * 1024
"""Output of one shell command that a model gets."""

TOOL_RESULT_BYTES: Final = 32 * 1024
"""Text of one tool result that a model gets; the rest is read with `read_result`."""

TOKEN_CHARACTERS: Final = 4
"""Characters that count as one token where no model has counted."""

COMPACTION_SHARE: Final = 0.85
"""The part of a context window at which a conversation is summarized."""

FULL_START_SHARE: Final = 0.5
"""Share of a context window that may be taken before a conversation starts without a warning."""

CALL_TIMEOUT_SECONDS: Final = 3600.0
"""Longest time of one call of an MCP server, whatever progress it reports."""

SAMPLING_ANSWERS: Final = 20
"""Model answers a server gets for one call before the person is asked."""

DISK_SECONDS: Final = 1.0
"""Longest time between turns of a session that wait for the disk."""

LEASE_SECONDS: Final = 30.0
"""How long a process that stopped answering keeps a session in a database to itself."""

CALIBRATION_SAMPLES: Final = 100
"""Answers `k: auto` measures on at most."""
