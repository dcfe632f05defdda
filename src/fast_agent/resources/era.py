"""The two eras of the protocol, and the versions of each."""

from __future__ import annotations

from typing import Literal, TypeAlias

Era: TypeAlias = Literal["handshake", "modern"]
"""How a client opens: `initialize` (up to 2025-11-25), or nothing, with `_meta` on each request."""

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
