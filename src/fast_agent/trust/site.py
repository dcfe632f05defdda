"""Sites: a part of a found file, and the effects that any part of it may have."""

from __future__ import annotations

import os
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from fast_agent.config.providers import PROVIDERS, QUERY_KEYS, is_own_host, split_models
from fast_agent.text.environment import has_variable, variables_in, with_defaults
from fast_agent.text.frozen import frozen
from fast_agent.text.redaction import (
    is_plain_token,
    is_secret_name,
    is_token_of_option,
    with_masked_secrets,
)
from fast_agent.trust.address import address_of
from fast_agent.trust.digest import MAX_BYTES, MAX_FILES
from fast_agent.trust.effect import ANY_PAGE, MODEL_FILE, Effect, no_files
from fast_agent.trust.free_models import address_without_key, only_talks
from fast_agent.trust.origin import end_of, looks_secret
from fast_agent.trust.programs import command_line, examine_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fast_agent.text.json_value import JsonValue
    from fast_agent.trust.address import Address
    from fast_agent.trust.context import Context
    from fast_agent.trust.effect import EffectKind, Holder

Keys: TypeAlias = "tuple[str | int, ...]"

PATH_IN_VARIABLE: Final = "the path is in a variable of your environment"
PROGRAM_IN_VARIABLE: Final = "the program is named by a variable; name it by its path"
TARGET_IN_VARIABLE: Final = "a variable decides whether it is an address or a program"
CODE_IN_VARIABLE: Final = (
    "the file is named by a variable, so its content cannot have been reviewed"
)
OUTSIDE: Final = "it is outside the project, where nothing found may write"
HIDDEN: Final = "it is a hidden file or looks like a secret, which nothing found may write"
TOO_LARGE: Final = (
    f"the model file has more than {MAX_BYTES >> 20} MiB; move it out of the project, or name it "
    "in the configuration of your home"
)
TOO_MANY: Final = (
    f"there are more than {MAX_FILES:,} Python files or {MAX_BYTES >> 20} MiB next to it, which "
    "cannot have been reviewed; move the functions into a separate directory"
)


@frozen
class Site:
    """A part of a found file that brings effects.

    Args:
        context: The context it is surveyed with.
        holder: What is left out where an effect is not allowed.
        path: The file, relative to the root.
        directory: Where relative paths in it start, absolute.
        line_of: Finds the line of a value, given its keys and a string in that line.
    """

    context: Context
    holder: Holder
    path: str
    directory: Path
    line_of: Callable[[Keys, str], int | None] = field(repr=False)

    def effect(
        self,
        kind: EffectKind,
        subject: str,
        keys: Keys,
        *,
        near: str = "",
        files: Mapping[str, str] | None = None,
        terms: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        refusal: str | None = None,
    ) -> Effect:
        """Make an effect of this part.

        Args:
            kind: What it does.
            subject: What the approval names.
            keys: The value that asks for it.
            near: A text on the line of the value.
            files: Digests of what is run or read.
            terms: The subject in parts, for policies.
            notes: Lines for people.
            refusal: Why it cannot be approved.
        """
        return Effect(
            kind,
            subject,
            self.holder,
            self.path,
            self.line_of(keys, near),
            MappingProxyType(dict(files)) if files else no_files(),
            terms,
            notes,
            refusal,
            keys,
        )

    def program(
        self,
        command: str,
        args: Sequence[str],
        keys: Keys,
        *,
        cwd: Path,
        env: Mapping[str, str],
        near: str = "",
    ) -> Iterator[Effect]:
        """Yield what a command line of the set does: `run`, and `send` for its variables.

        Args:
            command: The program, as written.
            args: Its arguments, as written.
            keys: The value that names it.
            cwd: Where it starts, absolute.
            env: Variables the set adds for it, as written.
            near: A text on the line of the value.
        """
        context = self.context
        path = context.given.environ.get("PATH", os.defpath)
        root = context.root.path
        program = examine_program(command, args, cwd=cwd, root=root, env=env, path=path)
        refusal = program.refusal
        if has_variable(command):
            refusal = PROGRAM_IN_VARIABLE
        files = dict(program.files)
        if any(map(has_variable, (*args, *env.values()))):
            words = tuple(map(with_defaults, args))
            named = {name: with_defaults(value) for name, value in env.items()}
            more = examine_program(command, words, cwd=cwd, root=root, env=named, path=path)
            files.update(more.files)
        shown_args = masked_words(args)
        shown_env = {name: masked(value, name) for name, value in env.items()}
        found = program.path or command
        yield self.effect(
            "run",
            command_line(found, shown_args, cwd=cwd, root=root, env=shown_env),
            keys,
            near=near,
            files=files,
            terms=(
                *(f"{name}={value}" for name, value in sorted(shown_env.items())),
                command,
                *shown_args,
            ),
            notes=program.notes,
            refusal=refusal,
        )
        to = f"`{PurePath(command).name}`"
        for text in (command, *args, *env.values()):
            yield from self.sends(text, keys, to=to, near=near)

    def connection(self, url: str, keys: Keys, *, near: str = "") -> Iterator[Effect]:
        """Yield the connection to an address, and what its path and query send there.

        Args:
            url: As written.
            keys: The value that names it.
            near: A text on the line of the value.
        """
        address = address_of(url)
        yield self.connect(address, keys, near=near)
        yield from self.sends(url, keys, to=str(address), host=address.host, near=near)

    def connect(self, address: Address, keys: Keys, *, near: str = "") -> Effect:
        """Make the effect of a connection."""
        return self.effect(
            "connect",
            str(address),
            keys,
            near=near,
            terms=address.terms,
            notes=address.notes,
            refusal=address.refusal,
        )

    def headers(
        self, headers: JsonValue, keys: Keys, address: Address, *, near: str = ""
    ) -> Iterator[Effect]:
        """Yield what headers send to an address; a value without variables counts as a field."""
        if not isinstance(headers, dict):
            return
        for name, value in headers.items():
            text = value if isinstance(value, str) else ""
            names = variables_in(text)
            if names:
                yield from self.sends(
                    text, (*keys, name), to=str(address), host=address.host, near=near
                )
            else:
                yield self.effect(
                    "send", f"header `{name}` to {address}", (*keys, name), near=near or name
                )

    def sends(
        self, text: str, keys: Keys, *, to: str, host: str = "", near: str = ""
    ) -> Iterator[Effect]:
        """Yield the variables of a string, each with its destination.

        Args:
            text: As written.
            keys: The value it stands in.
            to: Where it goes, for people.
            host: The host it goes to; empty where it goes to none.
            near: A text on the line of the value.
        """
        for name in variables_in(text):
            foreign = _is_foreign_key(name, host)
            yield self.effect(
                "send",
                f"{name} to {to}",
                keys,
                near=near or f"${{{name}",
                terms=() if foreign else (name, host),
            )

    def reads(self, text: str, keys: Keys, *, folder: bool = False) -> Iterator[Effect]:
        """Yield the effect of reading a path, where that is not free.

        Args:
            text: The path, as written.
            keys: The value that names it.
            folder: Whether it is a directory, of which everything may be read.
        """
        effect = self._path_effect("read", text, keys, folder=folder)
        if effect is not None:
            yield effect

    def writes(self, file: Path, text: str, keys: Keys, files: Mapping[str, str]) -> Effect:
        """Make the effect of writing a file.

        Args:
            file: The file, absolute.
            text: The path, as written.
            keys: The value that asks for it.
            files: Digests of texts that decide what is written.
        """
        root = self.context.root
        if has_variable(text):
            return self.effect("write", text, keys, near=text, refusal=PATH_IN_VARIABLE)
        refusal = None
        name = root.name(file)
        if not root.holds(file) and not (root.is_wide and self._is_beside(file)):
            refusal = OUTSIDE
        elif looks_secret(name):
            refusal = HIDDEN
        return self.effect("write", name, keys, near=text, files=files, refusal=refusal)

    def _is_beside(self, file: Path) -> bool:
        """Return whether a file is in a directory of the set itself, where its root is wide."""
        return end_of(file).is_relative_to(self.directory)

    def _path_effect(
        self, kind: Literal["read"], text: str, keys: Keys, *, folder: bool
    ) -> Effect | None:
        root = self.context.root
        if has_variable(text):
            subject = text if text[:1] in {"$", "/", "~"} else self._path_from_root(text)
            return self.effect(kind, subject, keys, near=text, notes=(PATH_IN_VARIABLE,))
        place = placed(text, self.directory)
        if place is None:
            return None
        if folder:
            inside = not root.is_wide and root.holds(place)
            if inside and not looks_secret(root.name(place)):
                return None
            return self.effect(kind, root.name(place), keys, near=text)
        if root.is_free(place):
            return None
        return self.effect(kind, root.name(place), keys, near=text)

    def _path_from_root(self, text: str) -> str:
        """Return a path with variables as it is from the root."""
        folder = self.context.root.name(self.directory)
        return text if folder == "." else f"{folder}/{text}"

    def model(self, text: str, keys: Keys, directory: Path) -> Iterator[Effect]:
        """Yield what a model spec does: files it names, a provider without a key of the user.

        Args:
            text: The spec, as written; or several with commas between.
            keys: The value it stands in.
            directory: Where relative files of it start, absolute.
        """
        for one in split_models(text):
            if not only_talks(one, self.context):
                yield from self._one_model(one, keys, directory)

    def _one_model(self, text: str, keys: Keys, directory: Path) -> Iterator[Effect]:
        parsed = self.context.model(text)
        if parsed is None:
            yield from self._unread_model(text, keys, directory)
            return
        options = parsed.options
        if options.path is not None:
            yield self.model_file(options.path, keys, directory, near=text)
        if options.file is not None:
            yield from self._with_directory(directory).reads(options.file, keys)
        if parsed.params.web_search or parsed.params.web_fetch:
            yield self.effect("connect", ANY_PAGE, keys, near=text)
        address = address_without_key(parsed.provider, self.context.given)
        if address is not None and parsed.endpoint is None:
            yield self.connect(address_of(address), keys, near=text)

    def _unread_model(self, text: str, keys: Keys, directory: Path) -> Iterator[Effect]:
        """Look at the query of a spec that cannot be read before its variables have values."""
        if not has_variable(text):
            return
        head, _, query = with_defaults(text).partition("?")
        for pair in query.split("&"):
            key, _, value = pair.partition("=")
            effects = {
                one for table in QUERY_KEYS.values() if key in table for one in table[key].effects
            }
            if "run" in effects:
                yield self.model_file(value, keys, directory, near=head)
            if "read" in effects:
                yield from self._with_directory(directory).reads(value, keys)
            if "connect" in effects:
                yield self.effect("connect", ANY_PAGE, keys, near=head)

    def model_file(self, text: str, keys: Keys, directory: Path, *, near: str = "") -> Effect:
        """Make the effect of a model file, which native code reads.

        Args:
            text: The file, as written.
            keys: The value that names it.
            directory: Where a relative path starts, absolute.
            near: A text on the line of the value.
        """
        near = near or text
        if has_variable(text):
            subject = f"{MODEL_FILE}{text}"
            return self.effect("run", subject, keys, near=near, notes=(PATH_IN_VARIABLE,))
        place = placed(text, directory)
        root = self.context.root
        if place is None:
            return self.effect("run", f"{MODEL_FILE}{text}", keys, near=near)
        subject = f"{MODEL_FILE}{root.name(place)}"
        if not end_of(place).is_relative_to(root.path):
            return self.effect("run", subject, keys, near=near)
        digest = self.context.digest(place)
        refusal = TOO_LARGE if digest is None else None
        files = {} if digest is None else {root.name(place): digest}
        return self.effect("run", subject, keys, near=near, files=files, refusal=refusal)

    def eases(self, setting: str, old: object, new: object, keys: Keys) -> Effect:
        """Make the effect of a weaker bound.

        Args:
            setting: Its name.
            old: The user's value or the default; None where there is no bound.
            new: The value the set wants.
            keys: The value that asks for it.
        """
        effect = self.effect("ease", f"{setting}: {_value_text(old)} → {_value_text(new)}", keys)
        return replace(effect, instead=old)

    def _with_directory(self, directory: Path) -> Site:
        """Return this part with another start of relative paths."""
        if directory == self.directory:
            return self
        return Site(self.context, self.holder, self.path, directory, self.line_of)


def masked(value: str, name: str = "") -> str:
    """Return a word of a command line as approvals hold it: each secret in it as its digest.

    The approval still depends on the value, but no question and no file shows it. What a program
    could run or open is shown in whole.

    Args:
        value: As written.
        name: The name of the variable it is the value of; empty for an argument.
    """
    if not value or has_variable(value):
        return value
    if name and is_secret_name(name) and is_plain_token(value):
        return _digest_mark(value)
    return with_masked_secrets(value, _digest_mark)


def masked_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of a command line as approvals hold them.

    Args:
        words: As written.
    """
    shown: list[str] = []
    before = ""
    for word in words:
        option, equals, value = word.partition("=")
        if equals and option.startswith("-") and is_secret_name(option):
            shown.append(f"{option}={masked(value, option)}")
        elif before.startswith("-") and is_secret_name(before) and is_token_of_option(word):
            shown.append(_digest_mark(word))
        else:
            shown.append(masked(word))
        before = word
    return tuple(shown)


def _digest_mark(secret: str) -> str:
    return f"secret:{sha256(secret.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def placed(text: str, directory: Path) -> Path | None:
    """Return where a path leads, as the rooms above would read it; None if it is not a path.

    Args:
        text: As written, without variables.
        directory: Where a relative path starts, absolute.
    """
    if text.lower().startswith("file://"):
        from urllib.parse import unquote, urlsplit

        return Path(unquote(urlsplit(text).path))
    if "://" in text or "\0" in text:
        return None
    return directory / os.path.expanduser(text)  # noqa: PTH111 - unknown users stay as they are


def _is_foreign_key(name: str, host: str) -> bool:
    """Return whether a variable holds a provider's key, and goes to another host than its own."""
    owners = [one.name for one in PROVIDERS.values() if name in one.key_variables]
    return bool(owners) and not any(is_own_host(one, host) for one in owners)


def _value_text(value: object) -> str:
    if value is None:
        return "no bound"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
