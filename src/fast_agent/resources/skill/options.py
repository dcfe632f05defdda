"""How skills are served: names, bounds, and what is offered in addition to resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from fast_agent.resources.skill.files import DEFAULT_SKILL_LIMITS, SkillLimits

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject


NamePolicy: TypeAlias = Literal["frontmatter", "strict", "lenient"]
"""What a name that is not its folder's, or no name at all, leads to: `frontmatter` serves a skill
under its `name` and leaves out wrong names; `strict` wants the folder's name as well; `lenient`
serves wrong ones too, outside `skills/list`."""


class SkillJudge(Protocol):
    """Decides which skills of a directory may be used, since it may be a strange project's."""

    def stamp(self) -> object:
        """Return a value that differs when a decision may be another one; asked often."""
        ...

    def is_found(self, folder: str) -> bool:
        """Return whether the skills of a directory came with a project, approved or not.

        Args:
            folder: The directory, absolute and without links.
        """
        ...

    def refuses(self, folder: str, frontmatter: JsonObject | None) -> bool:
        """Return whether a skill is left out, as its files are at this moment.

        Args:
            folder: Its directory, absolute and without links.
            frontmatter: The fields of its `SKILL.md`; None where they could not be read.
        """
        ...

    def approved_fields(self, folder: str, frontmatter: JsonObject) -> frozenset[str] | None:
        """Return the fields of a found skill that a person approved, as its files are now.

        Args:
            folder: Its directory, absolute and without links.
            frontmatter: The fields of its `SKILL.md`.

        Returns:
            None where the skill was not found, but given.
        """
        ...


class SkillOptions(NamedTuple):
    """How skills are served.

    Args:
        name_policy: What wrong names lead to.
        limits: Bounds.
        list_files: Whether `resources/list` has supporting files too.
        load_skill: Whether the tools `load_skill` and `read_skill_file` are offered.
        embed_catalog: Whether the tool says which skills there are.
        judge: Decides which skills may be used; None lets all through.
    """

    name_policy: NamePolicy = "frontmatter"
    limits: SkillLimits = DEFAULT_SKILL_LIMITS
    list_files: bool = False
    load_skill: bool = True
    embed_catalog: bool = True
    judge: SkillJudge | None = None


DEFAULT_OPTIONS = SkillOptions()
