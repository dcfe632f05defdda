"""Variables in cards: `${NAME}` in frontmatter and YAML values, replaced before the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.cards.findings import shown
from fast_agent.cards.special_value import Expanded, Variable
from fast_agent.diagnostics import card_rules as rules
from fast_agent.text.environment import UnsetVariableError, expand, has_variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.cards.findings import Findings, Path
    from fast_agent.text.json_value import JsonValue


def expand_fields(
    values: Mapping[str, JsonValue], environ: Mapping[str, str], findings: Findings
) -> dict[str, JsonValue]:
    """Replace the variables in all fields.

    Args:
        values: The fields as written.
        environ: The variables.
        findings: Where unset variables are reported. Their fields are lost.

    Returns:
        The fields with values in place, without the lost ones.
    """
    result: dict[str, JsonValue] = {}
    for name, value in values.items():
        errors = findings.errors
        expanded = _expand_tree(value, (name,), environ, findings)
        if findings.errors == errors:
            result[name] = expanded
        else:
            findings.lose(name)
    return result


def _expand_tree(
    value: JsonValue, path: Path, environ: Mapping[str, str], findings: Findings
) -> JsonValue:
    if isinstance(value, str):
        if not has_variable(value):
            return value
        try:
            text = expand(value, environ)
        except UnsetVariableError as error:
            message = f"{error.message}, in `{shown(path)}`"
            findings.add(rules.UNSET_VARIABLE, message, path, hint=error.hint)
            return None
        whole = value.startswith("${") and value.find("}") == len(value) - 1
        return Variable(text) if whole else Expanded(text)
    if isinstance(value, dict):
        return {
            key: _expand_tree(item, (*path, key), environ, findings) for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _expand_tree(item, (*path, index), environ, findings)
            for index, item in enumerate(value)
        ]
    return value
