"""How skills are served: names, bounds, and what is offered beside resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fast_agent.resources.skill.files import DEFAULT_SKILL_LIMITS, SkillLimits

if TYPE_CHECKING:
    from fast_agent.resources.skill.set import NamePolicy


class SkillOptions(NamedTuple):
    """How skills are served.

    Args:
        name_policy: What wrong names lead to.
        limits: Bounds.
        list_files: Whether `resources/list` has supporting files too.
        load_skill: Whether the tools `load_skill` and `read_skill_file` are offered.
        embed_catalog: Whether the tool says which skills there are.
    """

    name_policy: NamePolicy = "frontmatter"
    limits: SkillLimits = DEFAULT_SKILL_LIMITS
    list_files: bool = False
    load_skill: bool = True
    embed_catalog: bool = True


DEFAULT_OPTIONS = SkillOptions()
