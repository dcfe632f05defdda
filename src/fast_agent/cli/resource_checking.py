"""Checking skills and guides without serving them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.config.home import GUIDE_FILE
from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.roots import ResourceRoots


def split_paths(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Separate directories of skills from guides.

    Args:
        paths: What the person named.

    Returns:
        The directories of skills, and the guides.
    """
    skills: list[str] = []
    guides: list[str] = []
    for path in paths:
        found = Path(path)
        is_guide = found.is_file() or (found / GUIDE_FILE).is_file()
        (guides if is_guide else skills).append(path)
    return skills, guides


def check_roots(roots: ResourceRoots, more_guides: Sequence[str] = ()) -> list[Diagnostic]:
    """Check skills and guides.

    Args:
        roots: What to check; the internal documents have their own tests.
        more_guides: Further guides.

    Returns:
        Every problem, those of skills first, in the order of their files.
    """
    found: list[Diagnostic] = []
    if roots.skills:
        opened = roots._replace(guide=None, configured=None, internal=False).open(
            report=found.append
        )
        if opened.skill is not None:
            from fast_agent.resources.skill.check import check_provider

            found = check_provider(opened.skill)
    own = roots.guide is not None or roots.configured is not None
    for guide in [*([roots.guide] if own else ()), *more_guides]:
        found += _guide_problems(roots, guide)
    return list(dict.fromkeys(found))


def _guide_problems(roots: ResourceRoots, guide: str | None) -> list[Diagnostic]:
    """Check a guide; None is the configured one."""
    try:
        opened = roots._replace(skills=(), guide=guide, internal=False).open()
    except ConfigError as error:
        if not error.diagnostics:
            raise
        return list(error.diagnostics)
    return [] if opened.guide is None else list(opened.guide.diagnostics())
