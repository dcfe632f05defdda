"""One run of `fast-agent serve`: load, then serve or write the cards."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from fast_agent.app import FastAgent
from fast_agent.cli.faults import Faults
from fast_agent.cli.loading import load_cards
from fast_agent.cli.log import show_log
from fast_agent.cli.report import report_diagnostics, report_note
from fast_agent.errors import ConfigError, ModelError
from fast_agent.text.suggestion import closest

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.cards.agent_config import ChildHistory, HistorySource, HistoryTarget
    from fast_agent.serve.agent_scopes import InstanceScope
    from fast_agent.serve.agent_server import Served
    from fast_agent.serve.http import HttpSettings
    from fast_agent.sessions.store import SessionStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """The options of `fast-agent serve`, and what it does with them."""

    cards: tuple[str, ...]
    card_tools: tuple[str, ...]
    multi_card: bool
    transport: Literal["http", "stdio"]
    host: str
    port: int
    token_file: str | None
    scope: InstanceScope
    watch: bool
    reload: bool
    allow_load: tuple[str, ...]
    description: str | None
    skills: tuple[str, ...]
    guide: str | None
    internal: bool
    no_session: bool
    model: str | None
    servers: tuple[str, ...]
    shell: bool
    trust: bool
    child_history_source: HistorySource | None
    child_history_merge_target: HistoryTarget | None
    config_path: Path | None
    dump: Path | None
    dump_yaml: Path | None
    dump_agent: str | None
    dump_agent_path: Path | None
    dump_agent_yaml: bool
    quiet: bool

    def run(self) -> None:
        """Do it.

        Raises:
            FastAgentError: Something was wrong; nothing was served.
            click.UsageError: The options do not go together.
        """
        self._check_usage()
        show_log(quiet=self.quiet)
        program = FastAgent(config_path=self.config_path)
        http = beside = None
        with Faults() as faults:
            with faults.kept():
                self._load(program)
            with faults.kept():
                self._check_model(program)
            with faults.kept():
                self._check_roots()
            with faults.kept():
                http = self._http()
            with faults.kept():
                beside = self._beside()
        if self.dump or self.dump_yaml or self.dump_agent:
            from fast_agent.cli.dump import dump_agents

            dump_agents(program, self)
            return
        self._serve(program, http, beside)

    def _serve(self, program: FastAgent, http: HttpSettings | None, beside: Served | None) -> None:
        import gc
        from functools import partial

        import anyio

        gc.disable()  # nothing made by imports is garbage, and looking for some takes a tenth of it
        from fast_agent.serve.agent_serving import ServeOptions, serve
        from fast_agent.serve.http import HttpSettings

        gc.freeze()
        gc.enable()

        options = ServeOptions(
            transport=self.transport,
            http=http or HttpSettings(),
            scope=self.scope,
            description=self.description,
            watch=self.watch,
            reload=self.reload,
            allow_load=self.allow_load,
            trust=self.trust,
            model=self.model,
            shell=self.shell,
            child_history=self._child_history(),
            sessions=None if self.no_session else _store(program),
            beside=beside,
        )
        ready = partial(_say, "serving at {}")
        anyio.run(partial(serve, program, options, ready=ready, notify=report_note))

    def _check_usage(self) -> None:
        if bool(self.dump_agent) != bool(self.dump_agent_path):
            raise click.UsageError("--dump-agent and --dump-agent-path go together")
        if self.dump_agent_yaml and not self.dump_agent:
            raise click.UsageError("--dump-agent-yaml goes with --dump-agent")
        if self.transport == "stdio" and self.token_file is not None:
            raise click.UsageError("--token-file is for --transport http")

    def _load(self, program: FastAgent) -> None:
        load_cards(
            program,
            cards=self.cards,
            tools=self.card_tools,
            servers=self._servers(program),
            multi_card=self.multi_card,
            trust=self.trust,
        )
        if not self.quiet:
            notes = (*program.settings.warnings, *program.snapshot.notes)
            report_diagnostics(note for note in notes if note.severity == "warning")

    def _servers(self, program: FastAgent) -> list[str]:
        named = [name.strip() for names in self.servers for name in names.split(",")]
        for name in named:
            if name and name not in program.server_names:
                near = closest(name, program.server_names)
                raise ConfigError(
                    f"--servers names `{name}`, which the configuration does not define",
                    hint=f"did you mean `{near}`?" if near else "define it under `mcp.servers`",
                )
        return [name for name in named if name]

    def _check_model(self, program: FastAgent) -> None:
        if self.model is None:
            return
        from fast_agent.models.check import check_model

        problems = check_model(
            self.model, program.settings, os.environ, directory=program.workspace, ready=False
        )
        if problems:
            first = problems[0]
            raise ModelError(first.message, hint=first.hint, diagnostics=problems)

    def _check_roots(self) -> None:
        for root in self.allow_load:
            if not os.path.isdir(root):  # noqa: PTH112
                raise ConfigError(
                    f"--allow-load names `{root}`, which is no directory",
                    hint="make it, or correct the path",
                )

    def _http(self) -> HttpSettings:
        from fast_agent.serve.http import HttpSettings, read_token

        token = None if self.token_file is None else read_token(self.token_file)
        return HttpSettings(host=self.host, port=self.port, token=token)

    def _beside(self) -> Served | None:
        from fast_agent.resources.roots import ResourceRoots

        roots = ResourceRoots(skills=self.skills, guide=self.guide, internal=self.internal)
        if roots.empty:
            return None
        from fast_agent.serve.agent_server import Served

        opened = roots.open(
            report=lambda found: report_note(f"{found.severity}: {found.path}: {found.message}")
        )
        return Served(opened.catalog, opened.additions)

    def _child_history(self) -> ChildHistory | None:
        if self.child_history_source is None and self.child_history_merge_target is None:
            return None
        from fast_agent.cards.agent_config import ChildHistory

        return ChildHistory(
            source=self.child_history_source, merge_target=self.child_history_merge_target
        )


def _store(program: FastAgent) -> SessionStore:
    from fast_agent.config.home import home_directory
    from fast_agent.sessions.store import SessionStore

    disk_seconds = program.settings.sessions.disk_seconds
    return SessionStore(home_directory(os.environ), disk_seconds=disk_seconds)


def _say(form: str, address: str) -> None:
    click.echo(form.format(address), err=True)
