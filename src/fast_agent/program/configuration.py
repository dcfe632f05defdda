"""Configuration: what a program is configured with, and what its person alone configured."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.config.home import home_directory, working_directory
from fast_agent.config.load import load_settings
from fast_agent.config.settings import Settings
from fast_agent.errors import ConfigError
from fast_agent.text.json_value import as_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fast_agent.cards.load import ForeignPlaces
    from fast_agent.registry.admission import Admission
    from fast_agent.trust.gate import Gate


class Configuration:
    """The configuration of a program, read when it is first asked for.

    Args:
        cwd: The directory the program works in.
        environ: The environment.
        path: The configuration file; None searches for one.
        gate: What decides about files that were found.
        admission: Returns what admits their parts.
        is_ignored: Whether no configuration file is used at all.
    """

    def __init__(
        self,
        cwd: Path,
        environ: Mapping[str, str],
        path: Path | None,
        gate: Gate,
        admission: Callable[[], Admission],
        *,
        is_ignored: bool,
    ) -> None:
        self._cwd = cwd
        self._environ = environ
        self._path = path
        self._gate = gate
        self._admission = admission
        self._is_ignored = is_ignored
        self.known: Settings | None = None
        """The settings, where they were read already."""

    @property
    def settings(self) -> Settings:
        """The settings.

        Raises:
            ConfigError: With every problem of every file and variable.
        """
        if self.known is None:
            self.known = Settings() if self._is_ignored else self._checked()
        return self.known

    def reread(self) -> bool:
        """Read the files again, and return whether the settings are others now.

        Raises:
            ConfigError: With every problem; then the settings stay as they were.
        """
        if self._is_ignored:
            return False
        settings = self._checked()
        is_new = settings != self.known
        self.known = settings if is_new else self.known
        return is_new

    def _checked(self) -> Settings:
        admission = self._admission()
        settings = load_settings(
            cwd=self._cwd,
            environ=self._environ,
            home=home_directory(self._environ),
            config_path=self._path,
            shown_from=working_directory(),
            decide=admission.decide_layers,
            home_is_own=self._gate.fault is None,
        )
        if self._gate.options.without_found and admission.hides_home:
            settings = self._own()
        settings = admission.bounded(settings)
        if settings.default_model or settings.model_aliases:
            from fast_agent.models.check import check_settings

            # A program that only looks reads no file that a project names.
            may_read = (
                not self._gate.options.passive
                or settings.default_model == self.person.default_model
            )
            problems = check_settings(settings, self._environ, cwd=self._cwd, may_read=may_read)
            if problems:
                first = problems[0]
                raise ConfigError(first.message, hint=first.hint, diagnostics=problems)
        return settings

    @cached_property
    def person(self) -> Settings:
        """The configuration of the person alone: that of the home, and of the environment."""
        try:
            return self._own()
        except ConfigError:
            return Settings()  # a file of this run is wrong, or one that this run does not read

    def _own(self) -> Settings:
        if self._is_ignored or self._gate.fault is not None:
            return Settings()
        home = home_directory(self._environ)
        named = None if self._path is None else self._cwd / self._path
        # The search starts at the top, so that only the home is looked into.
        top = Path(home.anchor)
        return load_settings(cwd=top, environ=self._environ, home=home, config_path=named)

    def agents_in_place(self) -> ForeignPlaces:
        """Return what reads directories of agents of other tools, such as `.claude/agents`."""
        from fast_agent.config.find import find_files
        from fast_agent.config.layer import read_layer
        from fast_agent.formats.in_place import AgentsInPlace

        named = None if self._path is None else self._cwd / self._path
        file = find_files(self._cwd, home_directory(self._environ), named).config
        # Only names are taken: nothing is decided yet about a file that was found.
        layer = None if file is None or self._is_ignored else read_layer(file, str(file), [])
        written = as_object(None if layer is None else layer.document.value)
        there = as_object(as_object(written.get("mcp")).get("servers"))
        servers = (*self.person.mcp.servers, *there)
        return AgentsInPlace(self.person.foreign_agents or "none", servers)
