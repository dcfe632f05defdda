"""Rules about cards that a model reaches by their path (FA81x)."""

from __future__ import annotations

from typing import Final

from fast_agent.diagnostics.rule import Rule

REACHED_CODE: Final = Rule("FA811", "reached-code", "error")

REACHED_FILE: Final = Rule("FA812", "reached-file", "error")

RULES: tuple[Rule, ...] = (REACHED_CODE, REACHED_FILE)
