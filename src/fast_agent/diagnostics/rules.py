"""Rules: every code a diagnostic can have, one a line; a rule is the string of its code.

The page of a rule is Markdown in `pages/CODE.md`: what the rule means, an example that is wrong,
and the same example put right.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from fast_agent.diagnostics.diagnostic import Severity

PAGES: Final = Path(__file__).with_name("pages")
"""The directory of the pages."""


class Rule(str):
    """A code such as `FA101`, with the name and severity of its diagnostics.

    Args:
        code: The code, which is what the rule equals.
        name: Short name in lower-case words joined by hyphens, such as `unknown-field`.
        severity: The severity its diagnostics have.
    """

    __slots__ = ("name", "severity")
    name: str
    severity: Severity

    def __new__(cls, code: str, name: str, severity: Severity = "error") -> Self:
        """Make a rule."""
        rule = super().__new__(cls, code)
        rule.name = name
        rule.severity = severity
        return rule

    @property
    def code(self) -> str:
        """The code as a plain string."""
        return str.__str__(self)

    @property
    def page(self) -> str:
        """The page without a heading, as `fast-agent explain` and the docs show it; a file read."""
        return (PAGES / f"{self}.md").read_text("utf-8")


# FA11x and FA13x: the files cards are in
BAD_YAML: Final = Rule("FA110", "bad-yaml")
DUPLICATE_KEY: Final = Rule("FA111", "duplicate-key")
UNCLOSED_FRONTMATTER: Final = Rule("FA112", "unclosed-frontmatter")
TOML_FRONTMATTER: Final = Rule("FA113", "toml-frontmatter")
LOOSE_FENCE: Final = Rule("FA114", "loose-fence")
NOT_A_MAPPING: Final = Rule("FA115", "not-a-mapping")
NO_FRONTMATTER: Final = Rule("FA116", "no-frontmatter")
SEVERAL_CARDS: Final = Rule("FA117", "several-cards")
ENCODING: Final = Rule("FA118", "encoding")
MISSING_FILE: Final = Rule("FA131", "missing-file")
UNREADABLE_FILE: Final = Rule("FA132", "unreadable-file")
FILE_TOO_LARGE: Final = Rule("FA133", "file-too-large")
NOT_A_CARD_FILE: Final = Rule("FA134", "not-a-card-file")
REMOTE_FAILED: Final = Rule("FA135", "remote-failed")
SKIPPED_FILE: Final = Rule("FA136", "skipped-file", "info")
NO_CARDS: Final = Rule("FA137", "no-cards")

# FA10x and FA12x: the fields of one card
UNKNOWN_FIELD: Final = Rule("FA101", "unknown-field")
WRONG_TYPE: Final = Rule("FA102", "wrong-type")
BAD_VALUE: Final = Rule("FA103", "bad-value")
MISSING_FIELD: Final = Rule("FA104", "missing-field")
MISSING_INSTRUCTION: Final = Rule("FA105", "missing-instruction")
TWO_INSTRUCTIONS: Final = Rule("FA106", "two-instructions")
UNKNOWN_TYPE: Final = Rule("FA107", "unknown-type")
BAD_NAME: Final = Rule("FA108", "bad-name")
NEWER_SCHEMA: Final = Rule("FA109", "newer-schema")
HISTORY_IN_BODY: Final = Rule("FA121", "history-in-body")
UNSET_VARIABLE: Final = Rule("FA122", "unset-variable")
DEPRECATED_HISTORY_MODE: Final = Rule("FA123", "deprecated-history-mode", "warning")
HISTORY_MODE_CONFLICT: Final = Rule("FA124", "history-mode-conflict")
FORBIDDEN_REMOTE: Final = Rule("FA125", "forbidden-on-remote")

# FA20x and FA21x: what the cards of a set must agree on
UNKNOWN_AGENT: Final = Rule("FA201", "unknown-agent")
REFERENCE_CYCLE: Final = Rule("FA202", "reference-cycle")
SELF_REFERENCE: Final = Rule("FA203", "self-reference")
DUPLICATE_NAME: Final = Rule("FA204", "duplicate-name")
SIMILAR_NAMES: Final = Rule("FA205", "similar-names", "warning")
UNKNOWN_SERVER: Final = Rule("FA206", "unknown-server")
FILTER_WITHOUT_SERVER: Final = Rule("FA207", "filter-without-server")
TOOL_ONLY_DEFAULT: Final = Rule("FA208", "tool-only-default")
SEVERAL_DEFAULTS: Final = Rule("FA209", "several-defaults")
HISTORY_WITHOUT_CHILD: Final = Rule("FA210", "history-without-child")
REPEATED_NAME: Final = Rule("FA211", "repeated-name", "warning")
ATTACHED_AGENT_GONE: Final = Rule("FA212", "attached-agent-gone", "warning")
HISTORY_WITHOUT_FILE: Final = Rule("FA213", "history-without-file")
CALLS_NO_AGENTS: Final = Rule("FA214", "calls-no-agents", "warning")
CHOSEN_DEFAULT: Final = Rule("FA215", "chosen-default", "info")

# FA22x: what stops a dump
DUMP_OUTSIDE: Final = Rule("FA221", "dump-outside")
DUMP_FILE_COLLISION: Final = Rule("FA222", "dump-file-collision")
DUMP_CALLABLE: Final = Rule("FA223", "dump-callable")
DUMP_PATH: Final = Rule("FA224", "dump-path")
DUMP_VALUE: Final = Rule("FA225", "dump-value")
DUMP_FAILED: Final = Rule("FA226", "dump-failed")
DUMP_FILE_NAME: Final = Rule("FA227", "dump-file-name")

# FA3xx: configuration files and the variables that override them
UNREADABLE_CONFIG: Final = Rule("FA301", "unreadable-config")
INVALID_CONFIG_YAML: Final = Rule("FA302", "invalid-config-yaml")
UNKNOWN_CONFIG_KEY: Final = Rule("FA303", "unknown-config-key")
WRONG_CONFIG_TYPE: Final = Rule("FA304", "wrong-config-type")
WRONG_CONFIG_VALUE: Final = Rule("FA305", "wrong-config-value")
WRONG_SERVER: Final = Rule("FA306", "wrong-server")
UNSET_CONFIG_VARIABLE: Final = Rule("FA307", "unset-config-variable")
WRONG_OVERRIDE: Final = Rule("FA308", "wrong-override")
UNSAFE_CONFIG: Final = Rule("FA309", "unsafe-config", "warning")
SHADOWED_CONFIG: Final = Rule("FA310", "shadowed-config", "warning")
OPEN_SECRETS: Final = Rule("FA311", "open-secrets", "warning")
UNUSED_SETTING: Final = Rule("FA312", "unused-setting", "info")
UNSUPPORTED_SETTING: Final = Rule("FA313", "unsupported-setting", "warning")

# FA4xx: history files
UNREADABLE_HISTORY: Final = Rule("FA401", "unreadable-history")
INVALID_HISTORY_JSON: Final = Rule("FA402", "invalid-history-json")
DUPLICATE_HISTORY_KEY: Final = Rule("FA403", "duplicate-history-key")
INVALID_MESSAGE: Final = Rule("FA404", "invalid-message")
INVALID_RESOURCE_SECTION: Final = Rule("FA405", "invalid-resource-section")
MISPLACED_SECTION: Final = Rule("FA406", "misplaced-section")
UNUSABLE_ORDER: Final = Rule("FA407", "unusable-message-order", "warning")
NEAR_DELIMITER: Final = Rule("FA408", "near-delimiter", "warning")

# FA5xx: models, their names, their parameters and what they need
UNKNOWN_MODEL: Final = Rule("FA501", "unknown-model")
MALFORMED_MODEL: Final = Rule("FA502", "malformed-model")
UNKNOWN_MODEL_PARAMETER: Final = Rule("FA503", "unknown-model-parameter")
WRONG_MODEL_PARAMETER: Final = Rule("FA504", "wrong-model-parameter")
MODEL_ALIAS_LOOP: Final = Rule("FA505", "model-alias-loop")
MISSING_MODEL_KEY: Final = Rule("FA506", "missing-model-key")
MISSING_MODEL_ADDRESS: Final = Rule("FA507", "missing-model-address")
MISSING_MODEL_PACKAGE: Final = Rule("FA508", "missing-model-package")
MISSING_MODEL_FILE: Final = Rule("FA509", "missing-model-file")
WRONG_MODEL_FILE: Final = Rule("FA510", "wrong-model-file")
FULL_WINDOW: Final = Rule("FA511", "full-window", "warning")

# FA6xx: functions, hooks and directories a card names for its tools
FUNCTION_SPELLING: Final = Rule("FA601", "function-spelling")
FUNCTION_FILE_MISSING: Final = Rule("FA602", "function-file-missing")
FUNCTION_FILE_OUTSIDE: Final = Rule("FA603", "function-file-outside")
FUNCTION_FILE_SYNTAX: Final = Rule("FA604", "function-file-syntax")
FUNCTION_FILE_IMPORT: Final = Rule("FA605", "function-file-import")
FUNCTION_NAME_MISSING: Final = Rule("FA606", "function-name-missing")
FUNCTION_NOT_CALLABLE: Final = Rule("FA607", "function-not-callable")
FUNCTION_PARAMETERS: Final = Rule("FA608", "function-parameters")
HOOK_SIGNATURE: Final = Rule("FA609", "hook-signature")
DUPLICATE_TOOL: Final = Rule("FA610", "duplicate-tool", "warning")
SHELL_DIRECTORY: Final = Rule("FA611", "shell-directory", "warning")

# FA70x: placeholders in instructions
UNKNOWN_PLACEHOLDER: Final = Rule("FA701", "unknown-placeholder", "warning")
INSTRUCTION_FILE: Final = Rule("FA702", "instruction-file")
INSTRUCTION_SOURCE: Final = Rule("FA703", "instruction-source")
UNREADABLE_INDEX: Final = Rule("FA704", "unreadable-index", "warning")

# FA75x and FA76x: what a skill folder may hold and what its head must say
SKILL_FILE: Final = Rule("FA751", "skill-file")
SKILL_YAML: Final = Rule("FA752", "skill-yaml")
SKILL_NAME: Final = Rule("FA753", "skill-name")
SKILL_DESCRIPTION: Final = Rule("FA754", "skill-description")
SKILL_FIELD: Final = Rule("FA755", "skill-field")
SKILL_UNKNOWN_FIELD: Final = Rule("FA756", "unknown-skill-field", "warning")
SKILL_LOOSE_VALUE: Final = Rule("FA757", "loose-skill-value", "warning")
SKILL_FOLDER_NAME: Final = Rule("FA758", "skill-folder-name", "warning")
SKILL_COLLISION: Final = Rule("FA759", "skill-collision")
SKILL_FILE_COLLISION: Final = Rule("FA760", "skill-file-collision")
SKILL_TOO_MUCH: Final = Rule("FA761", "skill-too-large")
SKILL_SKIPPED: Final = Rule("FA762", "skill-file-skipped", "warning")
SKILL_LARGE_FILE: Final = Rule("FA763", "skill-file-large", "warning")
SKILL_SAME_NAME: Final = Rule("FA764", "skill-same-name", "warning")
SKILL_MANIFEST_FILE: Final = Rule("FA765", "skill-manifest-file", "warning")
SKILL_ROOT: Final = Rule("FA766", "skill-root")
SKILL_HIDDEN: Final = Rule("FA767", "hidden-characters", "warning")
SKILL_COMMENT: Final = Rule("FA768", "skill-comment", "warning")
SKILL_RISKY: Final = Rule("FA769", "risky-skill", "warning")
SKILL_LONG: Final = Rule("FA770", "long-skill", "info")

# FA77x and FA78x: the configuration of `guide://` and the documents it serves
WRONG_DOCROOT: Final = Rule("FA771", "wrong-guide-docroot")
WRONG_GUIDE_NAME: Final = Rule("FA772", "wrong-guide-name")
WRONG_GUIDE_DIRECTORY: Final = Rule("FA773", "wrong-guide-directory")
MISSING_GUIDE_DIRECTORY: Final = Rule("FA774", "missing-guide-directory", "warning")
WRONG_GUIDE_PATTERN: Final = Rule("FA775", "wrong-guide-pattern")
UNKNOWN_GUIDE_MEMBER: Final = Rule("FA776", "unknown-guide-member")
GUIDE_COLLECTION_LOOP: Final = Rule("FA777", "guide-collection-loop")
EMPTY_GUIDE_MEMBER: Final = Rule("FA778", "empty-guide-member", "warning")
UNSERVED_GUIDE_FILE: Final = Rule("FA779", "unserved-guide-file", "warning")
GUIDE_TREE_TOO_LARGE: Final = Rule("FA780", "guide-tree-too-large")
BROKEN_GUIDE_FRONTMATTER: Final = Rule("FA781", "broken-guide-frontmatter", "warning")
WRONG_GUIDE_METADATA: Final = Rule("FA782", "wrong-guide-metadata", "warning")

# FA80x: code that comes with cards
UNTRUSTED_CODE: Final = Rule("FA801", "untrusted-code")
CHANGED_CODE: Final = Rule("FA802", "changed-code")

# FA81x: cards that a model reaches by their path
REACHED_CODE: Final = Rule("FA811", "reached-code")
REACHED_FILE: Final = Rule("FA812", "reached-file")

# FA83x: agents of other tools that become cards, and cards that become such agents
LOST_FIELD: Final = Rule("FA831", "lost-field", "warning")
ADAPTED_FIELD: Final = Rule("FA832", "adapted-field", "info")
FOREIGN_FIELD: Final = Rule("FA833", "foreign-field", "warning")
LOOSE_FRONTMATTER: Final = Rule("FA834", "loose-frontmatter", "warning")
UNREADABLE_FOREIGN: Final = Rule("FA835", "unreadable-agent")
OPEN_TOOLS: Final = Rule("FA836", "open-tools", "info")
CONFIG_UNCHANGED: Final = Rule("FA837", "configuration-unchanged", "warning")
SKIPPED_FOREIGN: Final = Rule("FA838", "not-an-agent", "info")

# FA90x: files that arguments of a command name
BAD_JSON_SCHEMA: Final = Rule("FA901", "bad-json-schema")

# FA92x: `*.test.yaml` files
UNREADABLE_TEST_FILE: Final = Rule("FA921", "unreadable-test-file")
UNKNOWN_TEST_KEY: Final = Rule("FA922", "unknown-test-key")
WRONG_TEST_VALUE: Final = Rule("FA923", "wrong-test-value")
