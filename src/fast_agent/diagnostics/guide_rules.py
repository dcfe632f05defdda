"""Rules FA771 to FA789: the configuration of `guide://` and the documents it serves."""

from __future__ import annotations

from typing import Final

from fast_agent.diagnostics.rule import Rule

WRONG_DOCROOT: Final = Rule("FA771", "wrong-guide-docroot", "error")

WRONG_GUIDE_NAME: Final = Rule("FA772", "wrong-guide-name", "error")

WRONG_GUIDE_DIRECTORY: Final = Rule("FA773", "wrong-guide-directory", "error")

MISSING_GUIDE_DIRECTORY: Final = Rule("FA774", "missing-guide-directory", "warning")

WRONG_GUIDE_PATTERN: Final = Rule("FA775", "wrong-guide-pattern", "error")

UNKNOWN_GUIDE_MEMBER: Final = Rule("FA776", "unknown-guide-member", "error")

GUIDE_COLLECTION_LOOP: Final = Rule("FA777", "guide-collection-loop", "error")

EMPTY_GUIDE_MEMBER: Final = Rule("FA778", "empty-guide-member", "warning")

UNSERVED_GUIDE_FILE: Final = Rule("FA779", "unserved-guide-file", "warning")

GUIDE_TREE_TOO_LARGE: Final = Rule("FA780", "guide-tree-too-large", "error")

BROKEN_GUIDE_FRONTMATTER: Final = Rule("FA781", "broken-guide-frontmatter", "warning")

WRONG_GUIDE_METADATA: Final = Rule("FA782", "wrong-guide-metadata", "warning")

RULES: Final = (
    WRONG_DOCROOT,
    WRONG_GUIDE_NAME,
    WRONG_GUIDE_DIRECTORY,
    MISSING_GUIDE_DIRECTORY,
    WRONG_GUIDE_PATTERN,
    UNKNOWN_GUIDE_MEMBER,
    GUIDE_COLLECTION_LOOP,
    EMPTY_GUIDE_MEMBER,
    UNSERVED_GUIDE_FILE,
    GUIDE_TREE_TOO_LARGE,
    BROKEN_GUIDE_FRONTMATTER,
    WRONG_GUIDE_METADATA,
)
