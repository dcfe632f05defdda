"""Which skills, guides and documents a server or a command offers, and the service over them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.config.home import GUIDE_FILE, usual_skill_folders
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.resource import DEFAULT_LIMITS
from fast_agent.resources.service import ResourceService, ServerInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.guide.config import GuideConfig
    from fast_agent.resources.guide.provider import GuideProvider
    from fast_agent.resources.provider import Addition, Provider
    from fast_agent.resources.resource import Limits
    from fast_agent.resources.skill.files import NamePolicy, SkillJudge
    from fast_agent.resources.skill.provider import SkillProvider


class ResourceRoots(NamedTuple):
    """What is to be offered.

    Args:
        skills: Directories that hold skills, or are one.
        guide: A directory of documents or a guide's file; None for none.
        internal: Whether the documents that come with this project are offered.
        name_policy: What a skill's wrong name leads to.
        list_files: Whether lists name supporting files of skills too.
        load_skill: Whether the tool `load_skill` is offered.
        embed_catalog: Whether that tool's description names the skills.
        configured: The guide that a configuration names, where `guide` is None.
        judge: Decides which skills may be used; None lets all through.
        guide_is_found: Whether no user named the guide.
    """

    skills: tuple[str, ...] = ()
    guide: str | None = None
    internal: bool = False
    name_policy: NamePolicy = "frontmatter"
    list_files: bool = False
    load_skill: bool = True
    embed_catalog: bool = True
    configured: GuideConfig | None = None
    judge: SkillJudge | None = None
    guide_is_found: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing was named."""
        return not self.skills and self.guide is None and not self.internal

    def or_defaults_of(
        self,
        directory: str,
        configured: GuideConfig | None = None,
        home: Path | None = None,
        *,
        with_own: bool = False,
    ) -> ResourceRoots:
        """Take what belongs to a directory and the internal documents, where nothing was named.

        Args:
            directory: The directory.
            configured: The guide of its configuration, which goes before its `.guide.yaml`.
            home: The user's home, where the search in directories above ends; None if unknown.
            with_own: Whether the skills of the home count, before all others.
        """
        if not self.empty:
            return self
        here = Path(directory).absolute()
        folders = usual_skill_folders(here, home, with_own=with_own)
        return self._replace(
            skills=tuple([_shown(one, here, directory) for one in folders if one.is_dir()]),
            guide=directory if configured is None and _has_guide(directory) else None,
            guide_is_found=True,
            configured=configured,
            internal=True,
        )

    def open(
        self,
        limits: Limits = DEFAULT_LIMITS,
        report: Callable[[Diagnostic], None] | None = None,
    ) -> OpenRoots:
        """Look at the disk and make the providers.

        Args:
            limits: What they keep to.
            report: Called with each problem of a skill; None for the log.

        Raises:
            ConfigError: The guide is missing or wrong.
        """
        skill = self._skill_provider(limits, report) if self.skills else None
        guide = self._guide_provider(limits)
        providers: list[Provider] = [one for one in (skill, guide) if one is not None]
        if self.internal:
            from fast_agent.resources.internal.provider import InternalProvider

            providers.append(InternalProvider())
        catalog = Catalog(providers, limits)
        additions = [] if skill is None else list(_skill_additions(skill))
        if guide is not None or self.internal:
            from fast_agent.resources.search import catalog_addition

            additions.append(catalog_addition(catalog))
        return OpenRoots(catalog, additions, skill, guide)

    def _skill_provider(
        self, limits: Limits, report: Callable[[Diagnostic], None] | None
    ) -> SkillProvider:
        from fast_agent.resources.skill.files import SkillLimits, SkillOptions
        from fast_agent.resources.skill.provider import SkillProvider

        options = SkillOptions(
            name_policy=self.name_policy,
            limits=SkillLimits(core=limits),
            list_files=self.list_files,
            load_skill=self.load_skill,
            embed_catalog=self.embed_catalog,
            judge=self.judge,
        )
        return SkillProvider(self.skills, options, report=report)

    def _guide_provider(self, limits: Limits) -> GuideProvider | None:
        config = self.configured
        if self.guide is not None:
            from dataclasses import replace

            from fast_agent.resources.guide.config import load_guide

            config = load_guide(Path(self.guide))
            config = replace(config, is_found=self.guide_is_found)
        if config is None:
            return None
        from fast_agent.resources.guide.provider import GuideProvider

        return GuideProvider(config, limits)


def _shown(folder: Path, here: Path, directory: str) -> str:
    """Name a folder as the user named the directory it is in."""
    inside = folder.is_relative_to(here)
    return f"{directory}/{folder.relative_to(here).as_posix()}" if inside else str(folder)


def _has_guide(directory: str) -> bool:
    return os.path.isfile(f"{directory}/{GUIDE_FILE}")  # noqa: PTH113  (this is on the way to start)


class OpenRoots(NamedTuple):
    """What is offered.

    Args:
        catalog: All of it.
        additions: What a server offers in addition to resources.
        skill: The provider of skills, or None.
        guide: The provider of guides, or None.
    """

    catalog: Catalog
    additions: Sequence[Addition]
    skill: SkillProvider | None
    guide: GuideProvider | None

    def service(self, name: str, version: str) -> ResourceService:
        """Make the service over it.

        Args:
            name: How the server calls itself.
            version: The project's.
        """
        return ResourceService(self.catalog, ServerInfo(name, version), self.additions)


def _skill_additions(skill: SkillProvider) -> Sequence[Addition]:
    from fast_agent.resources.skill.methods import skill_addition

    return (skill_addition(skill),)
