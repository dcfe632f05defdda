"""Rules about code that comes with cards (FA8xx)."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

UNTRUSTED_CODE = "FA801"
CHANGED_CODE = "FA802"

RULES = (
    Rule(UNTRUSTED_CODE, "untrusted-code", "error"),
    Rule(CHANGED_CODE, "changed-code", "error"),
)
