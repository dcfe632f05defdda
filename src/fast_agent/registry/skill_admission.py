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

    def is_found(self, folder: str) -> bool:
        """Return whether the skills of a directory came with a project, approved or not.

        Args:
            folder: The directory, absolute and without links.
        """
        return self._decisions.has_skills(Path(folder))

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
                self._decisions.tell_of_skill(f"skill `{skill.name}` is left out: {reason}")
            return True
        for skills, grant in self._decisions.decided_skills():
            line = self._line(skill, skills, grant, frontmatter) if skills.holds(skill) else None
            if line is not None:
                self._decisions.tell_of_skill(line)
                return True
        return False

    def approved_fields(self, folder: str, frontmatter: JsonObject) -> frozenset[str] | None:
        """Return the fields of a found skill that a person approved, as its files are now.

        Args:
            folder: Its directory, absolute and without links.
            frontmatter: The fields of its `SKILL.md`, which are those that would be obeyed.

        Returns:
            None where the skill was not found, but given.
        """
        from fast_agent.trust.skill_effects import eased_subject

        skill, approved, is_found = Path(folder), set[str](), False
        for skills, grant in self._decisions.decided_skills():
            if skills.holds(skill):
                is_found = True
                eased = [one for one in skills.of(skill) if one.kind == "ease"]
                allowed = {one.subject for one in eased if grant.allows(one)}
                approved |= {
                    name
                    for name, value in frontmatter.items()
                    if eased_subject(skill.name, name, value) in allowed
                }
        return frozenset(approved) if is_found else None

    def _line(
        self, skill: Path, skills: FoundSkills, grant: Grant, frontmatter: JsonObject | None
    ) -> str | None:
        """Return the line about a skill that is left out; None if it may be used."""
        closed = [
            effect
            for effect in skills.of(skill)
            if effect.kind != "ease" and not grant.allows(effect)
        ]
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
