"""Rules FA3xx: configuration files and the variables that override them."""

from __future__ import annotations

from typing import Final

from fast_agent.diagnostics.rule import Rule

UNREADABLE_CONFIG: Final = Rule("FA301", "unreadable-config", "error")

INVALID_CONFIG_YAML: Final = Rule("FA302", "invalid-config-yaml", "error")

UNKNOWN_CONFIG_KEY: Final = Rule("FA303", "unknown-config-key", "error")

WRONG_CONFIG_TYPE: Final = Rule("FA304", "wrong-config-type", "error")

WRONG_CONFIG_VALUE: Final = Rule("FA305", "wrong-config-value", "error")

WRONG_SERVER: Final = Rule("FA306", "wrong-server", "error")

UNSET_CONFIG_VARIABLE: Final = Rule("FA307", "unset-config-variable", "error")

WRONG_OVERRIDE: Final = Rule("FA308", "wrong-override", "error")

UNSAFE_CONFIG: Final = Rule("FA309", "unsafe-config", "warning")

SHADOWED_CONFIG: Final = Rule("FA310", "shadowed-config", "warning")

OPEN_SECRETS: Final = Rule("FA311", "open-secrets", "warning")

RULES: Final = (
    UNREADABLE_CONFIG,
    INVALID_CONFIG_YAML,
    UNKNOWN_CONFIG_KEY,
    WRONG_CONFIG_TYPE,
    WRONG_CONFIG_VALUE,
    WRONG_SERVER,
    UNSET_CONFIG_VARIABLE,
    WRONG_OVERRIDE,
    UNSAFE_CONFIG,
    SHADOWED_CONFIG,
    OPEN_SECRETS,
)
