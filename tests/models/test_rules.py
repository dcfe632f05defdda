"""The examples on the pages of the rules are what the rules say they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import pytest

from fast_agent.diagnostics.rulebook import rules
from fast_agent.errors import ModelError
from fast_agent.models.script_file import read_script_file
from fast_agent.models.spec import parse_model_spec
from fast_agent.text.yaml_document import parse_yaml

if TYPE_CHECKING:
    from pathlib import Path

BLOCKS = {
    rule.code: re.findall(r"```yaml\n(.*?)```", rule.page, re.DOTALL) for rule in rules().values()
}


def code_of(text: str, aliases: dict[str, str] | None = None) -> str | None:
    try:
        parse_model_spec(text, aliases)
    except ModelError as error:
        return error.diagnostics[0].code
    return None


@pytest.mark.parametrize("code", ["FA501", "FA502", "FA503", "FA504"])
def test_models(code: str) -> None:
    wrong, right = (re.findall(r"model: (\S+)", block) for block in BLOCKS[code])
    assert [code_of(text) for text in wrong] == [code] * len(wrong)
    assert [code_of(text) for text in right] == [None] * len(right)
    assert wrong
    assert right


def test_aliases() -> None:
    wrong, right = (
        cast("dict[str, dict[str, str]]", parse_yaml(block).value)["model_aliases"]
        for block in BLOCKS["FA505"]
    )
    assert code_of("fast", wrong) == "FA505"
    assert code_of("fast", right) is None


def test_scripts(tmp_path: Path) -> None:
    wrong, right = BLOCKS["FA510"]
    path = tmp_path / "script.yaml"
    path.write_text(wrong)
    with pytest.raises(ModelError) as caught:
        read_script_file(path)
    assert caught.value.diagnostics[0].code == "FA510"
    path.write_text(right)
    assert read_script_file(path).script_of("any").steps
