"""Rules FA5xx: models, their names, their parameters and what they need."""

from __future__ import annotations

from typing import Final

from fast_agent.diagnostics.rule import Rule

UNKNOWN_MODEL: Final = Rule("FA501", "unknown-model", "error")

MALFORMED_MODEL: Final = Rule("FA502", "malformed-model", "error")

UNKNOWN_MODEL_PARAMETER: Final = Rule("FA503", "unknown-model-parameter", "error")

WRONG_MODEL_PARAMETER: Final = Rule("FA504", "wrong-model-parameter", "error")

MODEL_ALIAS_LOOP: Final = Rule("FA505", "model-alias-loop", "error")

MISSING_MODEL_KEY: Final = Rule("FA506", "missing-model-key", "error")

MISSING_MODEL_ADDRESS: Final = Rule("FA507", "missing-model-address", "error")

MISSING_MODEL_PACKAGE: Final = Rule("FA508", "missing-model-package", "error")

MISSING_MODEL_FILE: Final = Rule("FA509", "missing-model-file", "error")

WRONG_MODEL_FILE: Final = Rule("FA510", "wrong-model-file", "error")

RULES: Final = (
    UNKNOWN_MODEL,
    MALFORMED_MODEL,
    UNKNOWN_MODEL_PARAMETER,
    WRONG_MODEL_PARAMETER,
    MODEL_ALIAS_LOOP,
    MISSING_MODEL_KEY,
    MISSING_MODEL_ADDRESS,
    MISSING_MODEL_PACKAGE,
    MISSING_MODEL_FILE,
    WRONG_MODEL_FILE,
)
