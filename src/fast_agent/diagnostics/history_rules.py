"""Rules FA4xx: history files."""

from __future__ import annotations

from typing import Final

from fast_agent.diagnostics.rule import Rule

UNREADABLE_HISTORY: Final = Rule("FA401", "unreadable-history", "error")

INVALID_HISTORY_JSON: Final = Rule("FA402", "invalid-history-json", "error")

DUPLICATE_HISTORY_KEY: Final = Rule("FA403", "duplicate-history-key", "error")

INVALID_MESSAGE: Final = Rule("FA404", "invalid-message", "error")

INVALID_RESOURCE_SECTION: Final = Rule("FA405", "invalid-resource-section", "error")

MISPLACED_SECTION: Final = Rule("FA406", "misplaced-section", "error")

UNUSABLE_ORDER: Final = Rule("FA407", "unusable-message-order", "warning")

NEAR_DELIMITER: Final = Rule("FA408", "near-delimiter", "warning")

RULES: tuple[Rule, ...] = (
    UNREADABLE_HISTORY,
    INVALID_HISTORY_JSON,
    DUPLICATE_HISTORY_KEY,
    INVALID_MESSAGE,
    INVALID_RESOURCE_SECTION,
    MISPLACED_SECTION,
    UNUSABLE_ORDER,
    NEAR_DELIMITER,
)
