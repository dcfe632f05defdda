from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.own_home import own_home

from fast_agent import FastAgent

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.anyio
async def test_agents_look_up_the_guide_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "docs/ops").mkdir(parents=True)
    (tmp_path / "docs/ops/deploy.md").write_text("# Deploy\n\n## Auth\n\nUse the key.\n")
    (tmp_path / "fastagent.config.yaml").write_text("guide:\n  docroot: docs\n")
    program = FastAgent(cwd=tmp_path, environ=own_home(tmp_path))
    program.agent("reader", "Read.", model="passthrough", resource_tools=True)
    uri = "guide://document/ops/deploy.md"
    async with program.run() as app:
        listed = await app('***CALL_TOOL resource_list {"scheme": "guide"}')
        read = await app(f'***CALL_TOOL resource_read {{"uri": "{uri}", "section": "Auth"}}')
    assert uri in listed
    assert "Use the key." in read
