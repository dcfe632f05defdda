"""Rules FA7xx: placeholders in instructions."""

from __future__ import annotations

from typing import Final

from fast_agent.diagnostics.rule import Rule

UNKNOWN_PLACEHOLDER: Final = Rule("FA701", "unknown-placeholder", "warning")

INSTRUCTION_FILE: Final = Rule("FA702", "instruction-file", "error")

INSTRUCTION_SOURCE: Final = Rule("FA703", "instruction-source", "error")

RULES: tuple[Rule, ...] = (UNKNOWN_PLACEHOLDER, INSTRUCTION_FILE, INSTRUCTION_SOURCE)
