"""Files named as secrets are: a guide that no person named serves none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.resources.resource import DEFAULT_LIMITS
from fast_agent.resources.roots import ResourceRoots

if TYPE_CHECKING:
    from pathlib import Path

SECRET = ("id_rsa", "server.pem", "credentials.json", "app-secrets.yaml")


@pytest.mark.parametrize("named", [False, True])
def test_a_found_guide_serves_no_file_named_as_secrets_are(tmp_path: Path, *, named: bool) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / ".guide.yaml").write_text("categories: {docs: {}}\n")
    for name in (*SECRET, "guide.md", "credentials.md"):
        (tmp_path / "docs" / name).write_text("words\n")
    roots = ResourceRoots(guide=str(tmp_path)) if named else ResourceRoots()
    guide = roots.or_defaults_of(str(tmp_path)).open(DEFAULT_LIMITS).guide
    assert guide is not None
    served = {str(one.uri).rpartition("/")[2] for one in guide.documents()}
    assert {"guide.md", "credentials.md"} <= served
    assert served.isdisjoint(SECRET) is not named
