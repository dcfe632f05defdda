"""FA22x: what stops a dump."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

DUMP_OUTSIDE = "FA221"
DUMP_FILE_COLLISION = "FA222"
DUMP_CALLABLE = "FA223"
DUMP_PATH = "FA224"
DUMP_VALUE = "FA225"
DUMP_FAILED = "FA226"
DUMP_FILE_NAME = "FA227"

RULES: tuple[Rule, ...] = (
    Rule(DUMP_OUTSIDE, "dump-outside", "error"),
    Rule(DUMP_FILE_COLLISION, "dump-file-collision", "error"),
    Rule(DUMP_CALLABLE, "dump-callable", "error"),
    Rule(DUMP_PATH, "dump-path", "error"),
    Rule(DUMP_VALUE, "dump-value", "error"),
    Rule(DUMP_FAILED, "dump-failed", "error"),
    Rule(DUMP_FILE_NAME, "dump-file-name", "error"),
)
