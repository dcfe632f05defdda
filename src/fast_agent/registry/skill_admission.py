"""Skill admission: which skills of directories that no person named may be used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.registry.decisions import acts

if TYPE_CHECKING:
    from fast_agent.registry.decisions import Decisions
    from fast_agent.text.json_value import JsonObject
    from fast_agent.trust.grant import Grant
    from fast_agent.trust.skill_effects import FoundSkills


class SkillAdmission:
    """Decides about skills one by one, when they are listed and when they are read.

    Args:
        decisions: What was decided about found sets.
    """

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions

    def stamp(self) -> int:
        """Return a number that differs when a decision may be another one."""
        return self._decisions.decision()

    def refuses(self, folder: str, frontmatter: JsonObject | None) -> bool:
        """Return whether a skill is left out, as its files are at this moment.

        Args:
            folder: Its directory, absolute and without links.
            frontmatter: The fields of its `SKILL.md`; None where they could not be read.
        """
        skill = Path(folder)
        reason = self._decisions.closed(skill)
        if reason is not None:
            if reason:
                self._decisions.tell(f"skill `{skill.name}` is left out: {reason}")
            return True
        for skills, grant in self._decisions.decided_skills():
            line = self._line(skill, skills, grant, frontmatter) if skills.holds(skill) else None
            if line is not None:
                self._decisions.tell(line)
                return True
        return False

    def _line(
        self, skill: Path, skills: FoundSkills, grant: Grant, frontmatter: JsonObject | None
    ) -> str | None:
        """Return the line about a skill that is left out; None if it may be used."""
        closed = [effect for effect in skills.of(skill) if not grant.allows(effect)]
        if closed:
            holder = closed[0].holder
            own = [effect for effect in closed if effect.holder == holder]
            return f"{holder} is left out: {acts(own)}"
        from fast_agent.resources.skill.frontmatter import KNOWN_SKILL_FIELDS

        unknown = [name for name in frontmatter or () if name not in KNOWN_SKILL_FIELDS]
        if unknown:
            return (
                f"skill `{skill.name}` is left out: `{unknown[0]}` is not a field that a found "
                f"skill may have ({skills.place_of(skill)})"
            )
        return None
