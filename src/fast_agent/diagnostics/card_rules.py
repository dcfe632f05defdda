"""FA10x and FA12x: the fields of one card."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

UNKNOWN_FIELD = "FA101"
WRONG_TYPE = "FA102"
BAD_VALUE = "FA103"
MISSING_FIELD = "FA104"
MISSING_INSTRUCTION = "FA105"
TWO_INSTRUCTIONS = "FA106"
UNKNOWN_TYPE = "FA107"
BAD_NAME = "FA108"
NEWER_SCHEMA = "FA109"
HISTORY_IN_BODY = "FA121"
UNSET_VARIABLE = "FA122"
DEPRECATED_HISTORY_MODE = "FA123"
HISTORY_MODE_CONFLICT = "FA124"
FORBIDDEN_REMOTE = "FA125"

RULES: tuple[Rule, ...] = (
    Rule(UNKNOWN_FIELD, "unknown-field", "error"),
    Rule(WRONG_TYPE, "wrong-type", "error"),
    Rule(BAD_VALUE, "bad-value", "error"),
    Rule(MISSING_FIELD, "missing-field", "error"),
    Rule(MISSING_INSTRUCTION, "missing-instruction", "error"),
    Rule(TWO_INSTRUCTIONS, "two-instructions", "error"),
    Rule(UNKNOWN_TYPE, "unknown-type", "error"),
    Rule(BAD_NAME, "bad-name", "error"),
    Rule(NEWER_SCHEMA, "newer-schema", "error"),
    Rule(HISTORY_IN_BODY, "history-in-body", "error"),
    Rule(UNSET_VARIABLE, "unset-variable", "error"),
    Rule(DEPRECATED_HISTORY_MODE, "deprecated-history-mode", "warning"),
    Rule(HISTORY_MODE_CONFLICT, "history-mode-conflict", "error"),
    Rule(FORBIDDEN_REMOTE, "forbidden-on-remote", "error"),
)
