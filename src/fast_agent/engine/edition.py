"""Edition: which cards a run began with, as a digest of them or with all they are made from."""

from __future__ import annotations

import io
import json
import os
import tarfile
from base64 import b64encode
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import TYPE_CHECKING, Final, Protocol, cast

from fast_agent.cards.placeholder import PROJECT_FILES
from fast_agent.errors import ConfigError, RunError
from fast_agent.models.spec import parse_models
from fast_agent.prompt.named_file import card_inputs
from fast_agent.runtime.protected_files import LoadedProgram
from fast_agent.steps.steps import NULL_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from fast_agent.agents.events import Listener
    from fast_agent.cards.agent_config import FileAccess
    from fast_agent.cards.card import Card
    from fast_agent.config.settings import Settings
    from fast_agent.models.spec import ModelSpec
    from fast_agent.runtime.runtime import Runtime
    from fast_agent.steps.steps import Steps
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.human import Human

MAX_EDITION_BYTES: Final = 32 * 1024 * 1024
"""The most that the files of an edition may hold together."""

MANIFEST: Final = "edition.json"
"""The file of an edition that says how its cards are loaded."""

_FILES: Final = "files"


def edition_of(cards: Iterable[Card], workspace: Path, *chosen: object) -> str:
    """Return the digest of a card set.

    Args:
        cards: The cards.
        workspace: Where relative paths of agents made in Python start, absolute.
        chosen: What was chosen over the cards, such as a model.

    Returns:
        The digest; the same as long as no card, function, template or choice changes.
    """
    digest = sha256(repr(chosen).encode())
    for card in cards:
        digest.update(repr(card.config).encode())
        for name in sorted(card_inputs(card.config, workspace=workspace)):
            path = Path(name)
            digest.update(name.encode(errors="surrogatepass"))
            if path.is_file():
                digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditionChoices:
    """What a user chose over the cards of an edition.

    Args:
        model: The model of every agent, or None.
        shell: Whether every agent may run commands.
        files: What every agent may do with files, or None.
        fetch: Whether every agent may fetch web pages.
        servers: MCP servers that the receiver gets.
        receiver: The agent that gets servers and tools; None is the default one.
        multi_card: Whether a file may hold several cards.
    """

    model: str | None = None
    shell: bool = False
    files: FileAccess | None = None
    fetch: bool = False
    servers: tuple[str, ...] = ()
    receiver: str | None = None
    multi_card: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """How the cards of an edition are loaded.

    Args:
        workspace: The workspace, relative to the directory of the edition.
        cards: The files of the cards, in load order.
        tools: Those of them whose agents become tools of the receiver.
        choices: What the user chose over them.
        facts: What was true of the machine that made the edition, as runs have it.
        settings: A digest of each setting that decides what runs do.
    """

    workspace: str
    cards: tuple[str, ...]
    tools: tuple[str, ...]
    choices: EditionChoices
    facts: Mapping[str, str]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PackedEdition:
    """A card set with all it is made from.

    Args:
        digest: Names it: the digest of its bytes.
        data: A tar archive.
    """

    digest: str
    data: bytes


class LiveCards(Protocol):
    """The agents of a program while they are live."""

    @property
    def runtime(self) -> Runtime:
        """The agents."""
        ...


class CardProgram(LoadedProgram, Protocol):
    """A program as editions need it: it loads cards and makes them live."""

    def secrets(self) -> frozenset[str]:
        """Return the secrets it knows so far."""
        ...

    def load(
        self,
        *,
        cards: Iterable[str | Path] = (),
        tools: Iterable[str | Path] = (),
        servers: Iterable[str] = (),
        receiver: str | None = None,
        multi_card: bool = False,
    ) -> tuple[str, ...]:
        """Load cards, and return the names of all agents."""
        ...

    def run(
        self,
        *,
        model: str | None = None,
        shell: bool = False,
        files: FileAccess | None = None,
        fetch: bool = False,
        human: Human | None = None,
        steps: Steps = NULL_STEPS,
        partial_set: bool = False,
        is_traced: bool = True,
    ) -> AbstractAsyncContextManager[LiveCards]:
        """Make the agents live."""
        ...

    def traced(self, notify: Callable[[str], None]) -> AbstractAsyncContextManager[Listener | None]:
        """Return what makes traces of events, where the program or the environment wants them."""
        ...


def live(
    program: CardProgram, choices: EditionChoices, steps: Steps, human: Human | None = None
) -> AbstractAsyncContextManager[LiveCards]:
    """Make the agents of an edition live; their turns are not traced.

    Args:
        program: The program; the cards are loaded.
        choices: What the user chose over them.
        steps: Who carries them.
        human: Asks the user, or None.
    """
    return program.run(
        model=choices.model,
        shell=choices.shell,
        files=choices.files,
        fetch=choices.fetch,
        human=human,
        steps=steps,
        partial_set=True,
        is_traced=False,
    )


def pack_program(
    program: CardProgram,
    choices: EditionChoices,
    runtime: Runtime,
    *,
    facts: Mapping[str, str],
    tools: Iterable[Path] = (),
) -> tuple[PackedEdition, tuple[ModelSpec, ...]]:
    """Pack the cards of a program with the files of their models.

    Args:
        program: The program; its cards are loaded.
        choices: What the user chose over them.
        runtime: Its agents.
        facts: What is true of this machine, as runs have it.
        tools: Files and directories whose agents become tools of the receiver.

    Returns:
        The edition, and the models its agents ask.

    Raises:
        ConfigError: A card has no file, was not approved, or the files are too large.
    """
    settings = program.settings
    specs: list[tuple[Path | None, ModelSpec]] = []
    for name in program.load_set.cards:
        selection = runtime.model_of(name)
        parsed = parse_models(selection.text, settings.model_aliases, settings.endpoints)
        specs += [(selection.directory, spec) for spec in parsed]
    edition = pack_edition(
        program.load_set.cards.values(),
        program.workspace,
        choices,
        facts=facts,
        settings=settings,
        specs=specs,
        tools=tools,
    )
    return edition, tuple(spec for _, spec in specs)


def load_edition(program: CardProgram, files: Path, manifest: Manifest) -> None:
    """Load the cards of an unpacked edition.

    Args:
        program: Loads them.
        files: The directory of its files.
        manifest: How they are loaded.
    """
    choices = manifest.choices
    program.load(
        cards=[files / name for name in manifest.cards if name not in manifest.tools],
        tools=[files / name for name in manifest.tools],
        servers=choices.servers,
        receiver=choices.receiver,
        multi_card=choices.multi_card,
    )


def store_edition(
    program: CardProgram,
    choices: EditionChoices,
    runtime: Runtime,
    keep: Callable[[str, JsonValue], None],
    *,
    tools: Iterable[Path] = (),
) -> str:
    """Keep the cards of a program on this machine, for runs that continue after they were edited.

    Args:
        program: The program; its cards are loaded.
        choices: What the user chose over them.
        runtime: Its agents.
        keep: Keeps the edition under its digest.
        tools: Files and directories whose agents become tools of the receiver.

    Returns:
        The digest of the edition. It is only kept if all of its cards were approved, hold no
        secret, and do the same from another directory.
    """
    cards = program.load_set.cards.values()
    if all(card.config.cwd is None and not card.config.messages for card in cards):
        try:
            edition, _ = pack_program(program, choices, runtime, facts={}, tools=tools)
        except ConfigError:  # not to be packed
            pass
        else:
            if not any(one and one.encode() in edition.data for one in program.secrets()):
                keep(edition.digest, b64encode(edition.data).decode())
                return edition.digest
    return edition_of(cards, program.workspace, choices)


def pack_edition(
    cards: Iterable[Card],
    workspace: Path,
    choices: EditionChoices,
    *,
    facts: Mapping[str, str],
    settings: Settings,
    specs: Iterable[tuple[Path | None, ModelSpec]] = (),
    tools: Iterable[Path] = (),
) -> PackedEdition:
    """Pack a card set, so that other machines can load it.

    Keys and addresses are not in it: each worker has its own configuration.

    Args:
        cards: The cards.
        workspace: The workspace, absolute.
        choices: What the user chose over them.
        facts: What is true of this machine, as runs have it.
        settings: The configuration.
        specs: The models, each with the directory its files start at; those files go along.
        tools: Files and directories whose agents become tools of the receiver.

    Raises:
        ConfigError: A card has no file, was not approved, or the files are too large.
    """
    sources: dict[Path, None] = {}
    files: set[Path] = set()
    for card in cards:
        config = card.config
        if config.source is None:
            raise ConfigError(
                f"agent `{config.name}` has no file, so no other machine can load it",
                hint="save its card as a file",
            )
        if config.grant is not None and not config.grant.is_approved:
            raise ConfigError(
                f"agent `{config.name}` came with a project and is not approved",
                hint="`fast-agent trust` shows what it does, and approves it",
            )
        sources[config.source] = None
        files.add(config.source)
        files.update(_input_files(card, workspace))
    for directory, spec in specs:
        for name in (spec.options.file, spec.options.path):
            if name is not None and directory is not None:
                files.add((directory / name).resolve())
    files = {path for path in files if path.is_file()}
    root = Path(os.path.commonpath([workspace, *files]))
    under = [path.resolve() for path in tools]
    manifest = Manifest(
        workspace=str(workspace.relative_to(root)),
        cards=tuple(str(source.relative_to(root)) for source in sources),
        tools=tuple(
            str(source.relative_to(root))
            for source in sources
            if any(source.resolve().is_relative_to(one) for one in under)
        ),
        choices=choices,
        facts=dict(facts),
        settings=settings_digests(settings),
    )
    data = _tar(root, sorted(files), manifest)
    return PackedEdition(sha256(data).hexdigest()[:20], data)


def unpack_edition(digest: str, data: bytes, home: Path) -> tuple[Path, Manifest]:
    """Unpack an edition, once for all processes of this machine.

    Args:
        digest: The edition.
        data: Its bytes.
        home: The directory editions are unpacked in.

    Returns:
        The directory of its files, and how its cards are loaded.

    Raises:
        RunError: The bytes are not those of the edition.
    """
    if sha256(data).hexdigest()[:20] != digest:
        raise RunError(f"edition `{digest}` was changed since it was packed")
    target = home / digest
    if not (target / MANIFEST).is_file():
        fresh = home / f"{digest}.{token_hex(4)}"
        fresh.mkdir(parents=True, mode=0o700)
        try:
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                archive.extractall(fresh, filter="data")
            try:
                fresh.rename(target)
            except OSError:  # another worker was faster
                if not (target / MANIFEST).is_file():
                    raise
        except (OSError, tarfile.TarError) as error:
            raise RunError(f"edition `{digest}` cannot be unpacked: {error}") from error
        finally:
            rmtree(fresh, ignore_errors=True)
    return target / _FILES, read_manifest((target / MANIFEST).read_text(encoding="utf-8"))


def read_manifest(text: str) -> Manifest:
    """Read a manifest."""
    value = cast("dict[str, object]", json.loads(text))
    choices = cast("dict[str, object]", value["choices"])
    choices["servers"] = tuple(cast("list[str]", choices["servers"]))
    return Manifest(
        workspace=str(value["workspace"]),
        cards=tuple(cast("list[str]", value["cards"])),
        tools=tuple(cast("list[str]", value["tools"])),
        choices=EditionChoices(**choices),  # pyright: ignore[reportArgumentType]
        facts=cast("dict[str, str]", value["facts"]),
        settings=cast("dict[str, str]", value["settings"]),
    )


def settings_digests(settings: Settings) -> dict[str, str]:
    """Digest each setting that decides what a run does, and that holds no key or address."""
    values = {name: getattr(settings, name) for name in _DECISIVE}
    values["mcp.servers"] = sorted(settings.mcp.servers)
    return {
        name: sha256(_stable(value).encode()).hexdigest()[:12] for name, value in values.items()
    }


_DECISIVE: Final = ("default_model", "request_params", "compaction", "model_aliases", "model_facts")


def _stable(value: object) -> str:
    """Write a value the same way in every process."""
    if hasattr(value, "items"):
        items = cast("Mapping[str, object]", value).items()
        return repr(sorted((str(name), _stable(inner)) for name, inner in items))
    return repr(value)


def _input_files(card: Card, workspace: Path) -> Iterator[Path]:
    """Yield the files an agent is made from; of directories, such as skills, every file."""
    for name in card_inputs(card.config, workspace=workspace):
        path = Path(name)
        if path.is_dir():
            yield from (one for one in path.rglob("*") if "__pycache__" not in one.parts)
        else:
            yield path
    if "{{projectInstructions" in (card.config.instruction or ""):
        yield from (workspace / name for name in PROJECT_FILES)


def _tar(root: Path, files: list[Path], manifest: Manifest) -> bytes:
    """Write an archive that is the same for the same files, whenever it is written."""
    buffer = io.BytesIO()
    size = 0
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        text = json.dumps(asdict(manifest), sort_keys=True)
        _add(archive, MANIFEST, text.encode())
        directory = tarfile.TarInfo(f"{_FILES}/{manifest.workspace}")
        directory.type, directory.mode = tarfile.DIRTYPE, 0o700
        archive.addfile(directory)
        for path in files:
            data = path.read_bytes()
            size += len(data)
            if size > MAX_EDITION_BYTES:
                raise ConfigError(
                    f"the files of the cards hold more than {MAX_EDITION_BYTES:,} bytes",
                    hint=f"the last one is `{path}`; keep large files out of their directories",
                )
            _add(archive, f"{_FILES}/{path.relative_to(root)}", data)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o600
    archive.addfile(info, io.BytesIO(data))
