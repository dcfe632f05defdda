"""A home whose person declared a directory as their own, so that nothing there needs approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def own_home(directory: Path, home: Path | None = None) -> dict[str, str]:
    """Make the home of a test.

    Args:
        directory: The directory the test works in.
        home: The home; None puts it beside the directory.

    Returns:
        The variables that name the home.
    """
    home = home or directory.parent / f"{directory.name}-home"
    home.mkdir(exist_ok=True)
    own = f"trust: {{own: ['{directory}']}}\n"
    (home / "fastagent.config.yaml").write_text(own, encoding="utf-8")
    return {"HOME": str(home), "FAST_AGENT_HOME": str(home)}
