"""Rules about skills (FA751 to FA799): what a skill folder may hold and what its head must say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rule import Rule

if TYPE_CHECKING:
    from fast_agent.diagnostics.diagnostic import Severity
    from fast_agent.text.span import Span
    from fast_agent.text.yaml_nodes import YamlProblem

FILE = "FA751"
YAML = "FA752"
NAME = "FA753"
DESCRIPTION = "FA754"
FIELD = "FA755"
UNKNOWN_FIELD = "FA756"
LOOSE_VALUE = "FA757"
FOLDER_NAME = "FA758"
COLLISION = "FA759"
FILE_COLLISION = "FA760"
TOO_MUCH = "FA761"
SKIPPED = "FA762"
LARGE_FILE = "FA763"
SAME_NAME = "FA764"
MANIFEST_FILE = "FA765"
ROOT = "FA766"
HIDDEN = "FA767"
COMMENT = "FA768"
RISKY = "FA769"
LONG = "FA770"


def skill_file(
    path: str, message: str, span: Span | None, hint: str | None, line: str | None
) -> Diagnostic:
    """Report a `SKILL.md` that cannot be read."""
    return Diagnostic(FILE, message, path, span, hint=hint, source_line=line)


def skill_yaml(path: str, problem: YamlProblem, line: str) -> Diagnostic:
    """Report frontmatter that is not the YAML read here."""
    return Diagnostic(
        YAML, problem.message, path, problem.span, hint=problem.hint, source_line=line
    )


def of_folder(
    code: str, path: str, message: str, hint: str | None = None, severity: Severity | None = None
) -> Diagnostic:
    """Report something about a folder or a file as a whole."""
    return Diagnostic(code, message, path, severity=severity or severity_of(code), hint=hint)


def severity_of(code: str) -> Severity:
    """Give the severity of one of this module's rules."""
    return _SEVERITIES[code]


RULES = (
    Rule(FILE, "skill-file", "error"),
    Rule(YAML, "skill-yaml", "error"),
    Rule(NAME, "skill-name", "error"),
    Rule(DESCRIPTION, "skill-description", "error"),
    Rule(FIELD, "skill-field", "error"),
    Rule(UNKNOWN_FIELD, "unknown-skill-field", "warning"),
    Rule(LOOSE_VALUE, "loose-skill-value", "warning"),
    Rule(FOLDER_NAME, "skill-folder-name", "warning"),
    Rule(COLLISION, "skill-collision", "error"),
    Rule(FILE_COLLISION, "skill-file-collision", "error"),
    Rule(TOO_MUCH, "skill-too-large", "error"),
    Rule(SKIPPED, "skill-file-skipped", "warning"),
    Rule(LARGE_FILE, "skill-file-large", "warning"),
    Rule(SAME_NAME, "skill-same-name", "warning"),
    Rule(MANIFEST_FILE, "skill-manifest-file", "warning"),
    Rule(ROOT, "skill-root", "error"),
    Rule(HIDDEN, "hidden-characters", "warning"),
    Rule(COMMENT, "skill-comment", "warning"),
    Rule(RISKY, "risky-skill", "warning"),
    Rule(LONG, "long-skill", "info"),
)

_SEVERITIES: dict[str, Severity] = {rule.code: rule.severity for rule in RULES}
