"""FA11x and FA13x: the files cards are in."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

BAD_YAML = "FA110"
DUPLICATE_KEY = "FA111"
UNCLOSED_FRONTMATTER = "FA112"
TOML_FRONTMATTER = "FA113"
LOOSE_FENCE = "FA114"
NOT_A_MAPPING = "FA115"
NO_FRONTMATTER = "FA116"
SEVERAL_CARDS = "FA117"
ENCODING = "FA118"
MISSING_FILE = "FA131"
UNREADABLE_FILE = "FA132"
FILE_TOO_LARGE = "FA133"
NOT_A_CARD_FILE = "FA134"
REMOTE_FAILED = "FA135"
SKIPPED_FILE = "FA136"
NO_CARDS = "FA137"

RULES: tuple[Rule, ...] = (
    Rule(BAD_YAML, "bad-yaml", "error"),
    Rule(DUPLICATE_KEY, "duplicate-key", "error"),
    Rule(UNCLOSED_FRONTMATTER, "unclosed-frontmatter", "error"),
    Rule(TOML_FRONTMATTER, "toml-frontmatter", "error"),
    Rule(LOOSE_FENCE, "loose-fence", "error"),
    Rule(NOT_A_MAPPING, "not-a-mapping", "error"),
    Rule(NO_FRONTMATTER, "no-frontmatter", "error"),
    Rule(SEVERAL_CARDS, "several-cards", "error"),
    Rule(ENCODING, "encoding", "error"),
    Rule(MISSING_FILE, "missing-file", "error"),
    Rule(UNREADABLE_FILE, "unreadable-file", "error"),
    Rule(FILE_TOO_LARGE, "file-too-large", "error"),
    Rule(NOT_A_CARD_FILE, "not-a-card-file", "error"),
    Rule(REMOTE_FAILED, "remote-failed", "error"),
    Rule(SKIPPED_FILE, "skipped-file", "info"),
    Rule(NO_CARDS, "no-cards", "error"),
)
