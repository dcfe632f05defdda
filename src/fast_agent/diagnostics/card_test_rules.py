"""Rules about `*.test.yaml` files (FA92x)."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

UNREADABLE_TEST_FILE = Rule("FA921", "unreadable-test-file", "error")

UNKNOWN_TEST_KEY = Rule("FA922", "unknown-test-key", "error")

WRONG_TEST_VALUE = Rule("FA923", "wrong-test-value", "error")

RULES = (UNREADABLE_TEST_FILE, UNKNOWN_TEST_KEY, WRONG_TEST_VALUE)
