"""Loading the configuration: files and variables in, `Settings` or every problem at once out.

Files are found from the working directory upwards, then in the home.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from fast_agent.config.fields import SERVERS, SETTINGS
from fast_agent.config.home import CONFIG_NAMES, SECRETS_NAMES
from fast_agent.config.layer import (
    EnvironmentLayer,
    LayerReader,
    Place,
    read_layer,
    without,
    without_keys,
)
from fast_agent.config.providers import PROVIDERS
from fast_agent.config.settings import McpSettings, Settings
from fast_agent.diagnostics.rules import (
    OPEN_SECRETS,
    SHADOWED_CONFIG,
    UNSAFE_CONFIG,
    WRONG_CONFIG_VALUE,
    WRONG_OVERRIDE,
)
from fast_agent.errors import ConfigError
from fast_agent.schema.kinds import AnyOf, ListOf, MapOf, Record, SecretText, Text
from fast_agent.schema.reader import branch_of, built, entry_of
from fast_agent.text.frozen import frozen
from fast_agent.text.json_value import as_list, as_object
from fast_agent.text.wording import closest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fast_agent.cards.grant import CardGrant
    from fast_agent.config.layer import FileLayer, Layer, Tree
    from fast_agent.config.settings import ServerSettings
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.schema.kinds import Kind
    from fast_agent.text.json_value import JsonValue, Keys


@frozen
class FoundFiles:
    """The files a configuration is read from.

    Args:
        config: The configuration file, or None.
        secrets: The secrets file, or None.
        warnings: What was skipped, and why.
    """

    config: Path | None
    secrets: Path | None
    warnings: tuple[Diagnostic, ...]


def find_files(cwd: Path, home: Path, config_path: Path | None = None) -> FoundFiles:
    """Find the configuration and the secrets.

    Args:
        cwd: The working directory, absolute.
        home: The home directory of the program.
        config_path: A configuration file given by name, or None to search for one.

    Returns:
        The nearest of each. Secrets next to the configuration are nearest.
    """
    warnings: list[Diagnostic] = []
    config = config_path or _nearest(CONFIG_NAMES, _upwards(cwd), home, warnings)
    beside = () if config is None else (config.parent,)
    secrets = next(
        (found for folder in beside if (found := _in(SECRETS_NAMES, folder)) is not None), None
    )
    if secrets is None or not _is_safe(secrets, home):
        secrets = _nearest(SECRETS_NAMES, _upwards(cwd), home, warnings)
    if secrets is not None and (found := _open_to_others(secrets)) is not None:
        warnings.append(found)
    return FoundFiles(config, secrets, tuple(warnings))


def shown_path(path: Path, cwd: Path) -> str:
    """Write a path as people would: relative where it is below the working directory."""
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)


def _upwards(cwd: Path) -> Iterator[Path]:
    yield cwd
    yield from cwd.parents


def _nearest(
    names: tuple[str, ...], folders: Iterator[Path], home: Path, warnings: list[Diagnostic]
) -> Path | None:
    for folder in (*folders, home):
        found = _in(names, folder)
        if found is None:
            continue
        if not _is_safe(found, home):
            warnings.append(_skipped_diagnostic(found))
            continue
        for other in names[names.index(found.name) + 1 :]:
            if _is_file(folder / other):
                message = f"`{other}` is not read, because `{found.name}` is next to it"
                hint = f"keep one of them, preferably `{found.name}`"
                warnings.append(Place(str(folder / other)).problem(SHADOWED_CONFIG, message, hint))
        return found
    return None


def _in(names: tuple[str, ...], folder: Path) -> Path | None:
    return next((folder / name for name in names if _is_file(folder / name)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _is_safe(path: Path, home: Path) -> bool:
    """Whether only the user can have left the file there: a configuration can start programs."""
    if os.name != "posix" or path.parent == home:
        return True
    try:
        open_to_all = path.parent.stat().st_mode & 0o002
        return not open_to_all or path.lstat().st_uid in (os.geteuid(), 0)
    except OSError:
        return False


def _open_to_others(secrets: Path) -> Diagnostic | None:
    """Return a warning where other users may read or write the secrets."""
    if os.name != "posix":
        return None
    try:
        mode = stat.S_IMODE(secrets.stat().st_mode)
    except OSError:
        return None
    if not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return None
    message = f"other users may read or write these secrets: the permissions are {mode:04o}"
    return Place(str(secrets)).problem(OPEN_SECRETS, message, f"`chmod 600 {quote(str(secrets))}`")


def _skipped_diagnostic(path: Path) -> Diagnostic:
    return Place(str(path)).problem(
        UNSAFE_CONFIG,
        "the file was skipped: it is another user's, in a directory everyone may write to",
        "name it with `--config-path` if you trust it",
    )


_SERVERS: Final[Keys] = ("mcp", "servers")
_OWN: Final[tuple[Keys, ...]] = (("tui", "status_command"), ("foreign_agents",))
"""Settings that act on their own, so that they count in the user's own configuration only."""


@frozen
class FoundPart:
    """What counts of a configuration file that no user named.

    Args:
        grant: What its set may do.
        environ: The variables its values see; `VariableNames` while nothing is decided.
        left_out: The settings of it that do not count.
    """

    grant: CardGrant
    environ: Mapping[str, str]
    left_out: tuple[Keys, ...] = ()


Decide: TypeAlias = "Callable[[Sequence[FileLayer]], Mapping[str, FoundPart]]"
"""Decides about files, by their paths as they are shown; one it leaves out counts as named."""


def load_settings(
    *,
    cwd: Path,
    environ: Mapping[str, str],
    home: Path,
    config_path: Path | None = None,
    shown_from: Path | None = None,
    decide: Decide | None = None,
    home_is_own: bool = True,
) -> Settings:
    """Load the configuration.

    Args:
        cwd: The working directory; the search goes upwards from it.
        environ: The environment, for `${NAME}` and `SECTION__KEY`.
        home: The home directory of the program, searched last.
        config_path: A configuration file given by name, instead of the search.
        shown_from: The directory below which paths are shown relative; `cwd` when None.
        decide: Says what counts of files that no user named; None reads them as others.
        home_is_own: Whether the home is the user's own; else its files count as found.

    Returns:
        The settings; all defaults where there is no configuration.

    Raises:
        ConfigError: Something is wrong; `diagnostics` holds every problem.
    """
    cwd = cwd.absolute()
    shown_from = shown_from or cwd
    found = find_files(cwd, home, None if config_path is None else cwd / config_path)
    problems: list[Diagnostic] = []
    own = home if home_is_own else None
    warnings = list(found.warnings)
    files = [
        with_our_keys(layer, problems, warnings)
        for layer in _files(found, own, shown_from, problems, named=config_path is not None)
    ]
    decided: Mapping[str, FoundPart] = {}
    if decide is not None:
        decided = decide(files)
    layers: list[Layer] = []
    tree: Tree = {}
    for layer in files:
        part = decided.get(layer.path)
        reader = LayerReader(layer, layer.directory, environ if part is None else part.environ)
        if layer.directory != home and layer.has(("trust",)):
            problems.append(_policy_elsewhere(layer))
        if part or (decide is None and layer.root):
            problems += [_of_project(layer, keys) for keys in _OWN if layer.has(keys)]
        kept = layer if part is None else without(layer, part.left_out)
        tree = _merged(tree, reader.tree(SETTINGS, kept.document.value))
        problems.extend(reader.problems)
        layers.append(kept)
    overrides = read_overrides(SETTINGS, environ, cwd, tree)
    # A server of a file and of variables is left out as a whole if the part of the file is.
    # One that only gave way to a server of its name has that server's variables.
    gone = [
        keys
        for part in decided.values()
        for keys in part.left_out
        if keys[:-1] == _SERVERS and not any(layer.has(keys) for layer in layers)
    ]
    tree = _merged(tree, cast("Tree", without_keys(overrides.tree, gone)))
    problems.extend(overrides.problems)
    if overrides.layer.variables:
        layers.append(overrides.layer)
    grants = {path: part.grant for path, part in decided.items()}
    servers = _servers(tree, layers, problems, grants)
    if problems:
        raise _refusal(_in_order(problems, layers))
    return _settings(tree, servers, tuple(layers), tuple(warnings))


def with_our_keys(
    layer: FileLayer, problems: list[Diagnostic], warnings: list[Diagnostic]
) -> FileLayer:
    """Return a file with the settings of the nearest peer read as ours.

    Args:
        layer: A configuration file.
        problems: Takes what is wrong with such settings.
        warnings: Takes a note for each that does nothing here.
    """
    if not _has_unknown_key(SETTINGS, layer.document.value):
        return layer
    from fast_agent.config.compatibility import translated

    layer, notes = translated(layer, SETTINGS)
    for note in notes:
        (problems if note.severity == "error" else warnings).append(note)
    return layer


def _has_unknown_key(kind: Kind, value: JsonValue) -> bool:
    """Return whether a mapping somewhere in a value has a key that its table does not have."""
    match kind:
        case AnyOf():
            branch = branch_of(kind, value)
            return branch is not None and _has_unknown_key(branch, value)
        case ListOf():
            return any(_has_unknown_key(kind.item, one) for one in as_list(value))
        case MapOf():
            return any(_has_unknown_key(kind.value, one) for one in as_object(value).values())
        case Record():
            own = {name: one.kind for one in kind.entries for name in (one.name, one.spelling)}
            return any(
                key not in own or _has_unknown_key(own[key], one)
                for key, one in as_object(value).items()
            )
        case _:
            return False


def _policy_elsewhere(layer: FileLayer) -> Diagnostic:
    """Refuse a policy in any file but that of the home: a project must not decide about itself."""
    return layer.place(("trust",), key=True).problem(
        WRONG_CONFIG_VALUE,
        "`trust` is allowed in the configuration of your home only",
        "move it there, or remove it",
    )


def _of_project(layer: FileLayer, keys: Keys) -> Diagnostic:
    """Refuse in a found file what would act as soon as the file is read."""
    return layer.place(keys, key=True).problem(
        WRONG_CONFIG_VALUE,
        f"`{'.'.join(map(str, keys))}` is allowed in your own configuration only",
        "move it to the configuration of your home, or pass this file with `--config-path`",
    )


def _files(
    found: FoundFiles,
    home: Path | None,
    shown_from: Path,
    problems: list[Diagnostic],
    *,
    named: bool,
) -> list[FileLayer]:
    """Read the files that were found, the weakest first, and return which are found ones."""
    layers: list[FileLayer] = []
    for path, secret in ((found.config, False), (found.secrets, True)):
        if path is None:
            continue
        layer = read_layer(path, shown_path(path, shown_from), problems, secret=secret)
        if layer is None:
            continue
        given = path.parent == home or (
            named and found.config is not None and path.parent == found.config.parent
        )
        root = None if given else Path(os.path.realpath(path.parent))
        layers.append(replace(layer, root=root))
    return layers


def _in_order(problems: Sequence[Diagnostic], layers: Sequence[Layer]) -> list[Diagnostic]:
    """Sort problems as the files are read, and in each by place; those of variables come last."""
    paths = [layer.path for layer in layers if layer.path]

    def order(problem: Diagnostic) -> tuple[bool, int, int, int]:
        start = None if problem.span is None else problem.span.start
        file = paths.index(problem.path) if problem.path in paths else -1
        line, column = (0, 0) if start is None else (start.line, start.column)
        return (not problem.path, file, line, column)

    return sorted(problems, key=order)


def _refusal(errors: Sequence[Diagnostic]) -> ConfigError:
    first = errors[0]
    where = "" if not first.path else f"`{first.path}`: "
    more = "" if len(errors) == 1 else f" (and {len(errors) - 1} more)"
    return ConfigError(f"{where}{first.message}{more}", hint=first.hint, diagnostics=errors)


def _merged(lower: Tree, upper: Tree) -> Tree:
    """Merge one tree over another: mappings key by key, everything else as a whole."""
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        both = isinstance(value, dict) and isinstance(below, dict)
        merged[key] = _merged(cast("Tree", below), cast("Tree", value)) if both else value
    return merged


def _servers(
    tree: Tree,
    layers: Sequence[Layer],
    problems: list[Diagnostic],
    grants: Mapping[str, CardGrant],
) -> Mapping[str, ServerSettings]:
    servers: dict[str, ServerSettings] = {}
    given: Mapping[str, Any] = built(SERVERS, tree.get("mcp", {}).get("servers", {}))

    def place(keys: Keys, *, key: bool = False) -> Place:
        for layer in reversed(layers):
            if layer.has(keys):
                return layer.place(keys, key=key)
        return layers[-1].place(keys, key=key)

    if not given:
        return MappingProxyType(servers)
    from fast_agent.config.server import make_server

    for name, values in given.items():
        complete = not _is_reported(problems, place(("mcp", "servers", name)))
        server, wrong = make_server(name, values, place, complete=complete)
        problems.extend(wrong)
        if server is not None:
            # A server made of several files is found if one of them is.
            own = [layer.path for layer in layers if layer.has(("mcp", "servers", name))]
            brought = [grants[path] for path in own if path in grants]
            servers[name] = replace(server, grant=brought[-1]) if brought else server
    return MappingProxyType(servers)


def _is_reported(problems: Sequence[Diagnostic], place: Place) -> bool:
    """Whether a problem inside a place was reported before."""
    return place.span is not None and any(
        problem.path == place.path
        and problem.span is not None
        and place.span.start <= problem.span.start
        and problem.span.end <= place.span.end
        for problem in problems
    )


def _settings(
    tree: Tree,
    servers: Mapping[str, ServerSettings],
    layers: tuple[Layer, ...],
    warnings: tuple[Diagnostic, ...],
) -> Settings:
    values: dict[str, Any] = {
        entry.name: built(entry.kind, tree[entry.name])
        for entry in SETTINGS.entries
        if entry.name in tree
    }
    values["mcp"] = McpSettings(servers=servers)
    model = values.get("default_model")
    if isinstance(model, tuple):
        values["default_model"] = ", ".join(cast("tuple[str, ...]", model))
    # A policy is read from where it counts, never from what was merged here.
    values.pop("trust", None)
    providers = {name: values.pop(name) for name in PROVIDERS if name in values}
    return Settings(
        providers=MappingProxyType(providers), layers=layers, warnings=warnings, **values
    )


_MARK = "__"


@frozen
class Overrides:
    """What the environment says.

    Args:
        layer: The variables, for places.
        tree: Their values.
        problems: What is wrong with them.
    """

    layer: EnvironmentLayer
    tree: Tree
    problems: tuple[Diagnostic, ...]


def read_overrides(
    table: Record, environ: Mapping[str, str], directory: Path, known: Mapping[str, Any]
) -> Overrides:
    """Read the variables whose first part names a section.

    Args:
        table: The configuration.
        environ: The environment.
        directory: Where relative paths start.
        known: The settings of the files, so that names in them are found in any letter case.
    """
    variables: dict[Keys, str] = {}
    tree: Tree = {}
    layer = EnvironmentLayer(variables)
    reader = LayerReader(layer, directory, environ)
    problems: list[Diagnostic] = []
    sections = {
        entry.name.upper()
        for entry in table.entries
        if isinstance(entry.kind, Record | MapOf) and entry.name != "trust"
    }
    for name in sorted(environ):
        first, mark, _ = name.partition(_MARK)
        if not mark or first not in sections:
            continue
        found = _target(table, name.split(_MARK), known)
        if isinstance(found, str):
            place = Place("", variable=name)
            problems.append(place.problem(WRONG_OVERRIDE, *_unknown(found)))
            continue
        keys, kind = found
        text = environ[name]
        if not text and not (isinstance(kind, Text) and kind.blank):
            continue
        variables[keys] = name
        value = reader.text(kind, text, keys)
        if value is not None:
            _put(tree, keys, value)
    # One code for all of them: what is wrong is the variable.
    wrong = [_recoded(problem) for problem in reader.problems]
    return Overrides(layer, tree, (*problems, *wrong))


def _target(
    table: Record, parts: list[str], known: Mapping[str, Any]
) -> tuple[tuple[str, ...], Kind] | str:
    """Find the setting a variable denotes, or return the problem and, a line below, a hint."""
    kind: Kind = table
    keys: tuple[str, ...] = ()
    here: object = known
    for part in parts:
        if isinstance(kind, Record):
            entry = entry_of(kind, part.lower())
            if entry is None:
                names = [entry.name for entry in kind.entries]
                near = closest(part, names)
                hint = (
                    f"did you mean `{near.upper()}`?" if near else f"known keys: {', '.join(names)}"
                )
                return f"there is no `{part}` in `{'.'.join(keys)}`\n{hint}"
            key, kind = entry.name, entry.kind
        elif isinstance(kind, MapOf) and part:
            key, kind = _free_key(part, here, exact=isinstance(kind.value, SecretText)), kind.value
        else:
            return f"`{'.'.join(keys)}` has nothing below it that a variable could set"
        keys = (*keys, key)
        here = cast("Mapping[str, object]", here).get(key) if isinstance(here, Mapping) else None
    return keys, kind


def _free_key(part: str, here: object, *, exact: bool) -> str:
    """Choose the key a part denotes: an existing one, or a new one."""
    if isinstance(here, Mapping):
        folded = _fold(part)
        for key in cast("Mapping[str, object]", here):
            if key == part or (not exact and _fold(key) == folded):
                return key
    return part if exact else part.lower()


def _fold(key: str) -> str:
    return key.lower().replace("-", "_")


def _unknown(text: str) -> tuple[str, str | None]:
    message, _, hint = text.partition("\n")
    return message, hint or None


def _put(tree: Tree, keys: tuple[str, ...], value: object) -> None:
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
    tree[keys[-1]] = value


def _recoded(problem: Diagnostic) -> Diagnostic:
    return replace(problem, code=WRONG_OVERRIDE.code)
