"""Rules about files that arguments of a command name (FA9xx)."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

BAD_JSON_SCHEMA = "FA901"

RULES = (Rule(BAD_JSON_SCHEMA, "bad-json-schema", "error"),)
