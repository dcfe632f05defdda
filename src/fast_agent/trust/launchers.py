"""Launchers: programs that run what files of a project say, and the files they read."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NODE: Final = (
    "package.json",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "pnpm-workspace.yaml",
    "tsconfig.json",
    ".pnp.cjs",
    ".pnp.loader.mjs",
)
_PYTHON: Final = (
    "sitecustomize.py",
    "usercustomize.py",
    "pyvenv.cfg",
    ".venv/pyvenv.cfg",
    "pyproject.toml",
)
_UV: Final = (*_PYTHON, "uv.toml", "uv.lock", ".python-version", ".env")
_PROJECTS: Final = (*_PYTHON, "pip.conf", "poetry.toml", "hatch.toml", "pdm.toml", "pdm.lock")
_DENO: Final = ("deno.json", "deno.jsonc", "deno.lock", "package.json", ".npmrc")
_BUN: Final = (*_NODE, "bunfig.toml", "bun.lock", "bun.lockb")
_CONTAINER: Final = (
    "compose.yaml",
    "compose.yml",
    "docker-compose.yaml",
    "docker-compose.yml",
    "compose.override.yaml",
    "compose.override.yml",
    "docker-compose.override.yaml",
    "docker-compose.override.yml",
    "Dockerfile",
    "Containerfile",
    ".env",
)
_MAKE: Final = ("GNUmakefile", "makefile", "Makefile")
_CARGO: Final = ("Cargo.toml", "Cargo.lock", ".cargo/config.toml", ".cargo/config", "build.rs")
_MISE: Final = (
    "mise.toml",
    ".mise.toml",
    ".tool-versions",
    "mise.local.toml",
    "mise/config.toml",
    ".mise/config.toml",
    ".config/mise.toml",
    ".config/mise/config.toml",
)
_DOTNET: Final = (
    "global.json",
    "nuget.config",
    "NuGet.Config",
    "Directory.Build.props",
    "Directory.Build.targets",
)

FILES_OF: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(("node", "npm", "npx", "pnpm", "pnpx", "yarn", "corepack", "tsx"), _NODE),
        **dict.fromkeys(("bun", "bunx"), _BUN),
        "deno": _DENO,
        "python": _PYTHON,
        **dict.fromkeys(("pip", "pipx", "poetry", "hatch", "pdm", "rye"), _PROJECTS),
        "pixi": (*_PYTHON, "pixi.toml", "pixi.lock"),
        **dict.fromkeys(("uv", "uvx"), _UV),
        **dict.fromkeys(("docker", "podman", "docker-compose", "nerdctl"), _CONTAINER),
        **dict.fromkeys(("make", "gmake"), _MAKE),
        "just": ("justfile", "Justfile", ".justfile", ".env"),
        "task": ("Taskfile.yml", "Taskfile.yaml", "Taskfile.dist.yml"),
        "cargo": _CARGO,
        "go": ("go.mod", "go.work"),
        **dict.fromkeys(
            ("ruby", "bundle", "bundler", "rake"),
            ("Gemfile", "Gemfile.lock", "Rakefile", ".bundle/config"),
        ),
        **dict.fromkeys(
            ("mvn", "mvnw"),
            (
                "pom.xml",
                ".mvn/maven.config",
                ".mvn/jvm.config",
                ".mvn/extensions.xml",
                ".mvn/wrapper/maven-wrapper.properties",
            ),
        ),
        **dict.fromkeys(
            ("gradle", "gradlew"),
            (
                "build.gradle",
                "build.gradle.kts",
                "settings.gradle",
                "settings.gradle.kts",
                "gradle.properties",
                "gradle/wrapper/gradle-wrapper.properties",
            ),
        ),
        **dict.fromkeys(("php", "composer"), ("composer.json", "composer.lock")),
        "dotnet": _DOTNET,
        **dict.fromkeys(("mise", "asdf", "rtx"), _MISE),
        "direnv": (".envrc",),
        "nix": ("flake.nix", "flake.lock", "default.nix", "shell.nix"),
        "git": (".gitmodules", ".git/config"),
    }
)
"""The files each launcher reads from its directory and those above, by the name of its program."""

PROJECT_FILES: Final[tuple[str, ...]] = tuple(
    dict.fromkeys(name for names in FILES_OF.values() for name in names)
)
"""All of them, for a program of the project itself, which may start any launcher."""

_NAMES: Final = tuple(f"/{name.lower()}" for name in PROJECT_FILES)

_VERSION: Final = re.compile(r"\d[\w.+!-]*\Z")
_DOWNLOADERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "npx": ("",),
        "pnpx": ("",),
        "bunx": ("",),
        "uvx": ("",),
        "npm": ("exec", "x"),
        "pnpm": ("dlx",),
        "yarn": ("dlx",),
        "bun": ("x",),
        "uv": ("tool run",),
        "pipx": ("run",),
        "deno": ("run",),
        "docker": ("run",),
        "podman": ("run",),
        "nerdctl": ("run",),
        "go": ("run",),
        "nix": ("run",),
    }
)
_OPTIONS_WITH_VALUE: Final = re.compile(
    r"-[pevwuc]|--(?:package|from|with|spec|python|env|volume|name|workdir|network|user|mount|"
    r"entrypoint|index|index-url|directory|registry|call)"
)
_PACKAGE_OPTIONS: Final = frozenset({"-p", "--package", "--from", "--spec"})


def is_launcher_file(name: str) -> bool:
    """Return whether a launcher would read a file of this name, whatever directory it is in.

    Args:
        name: A file name or a path with `/`; case does not matter.
    """
    place = f"/{name.lower()}"
    return place.endswith(_NAMES) or "/node_modules/.bin/" in place


def downloads_package(program: str, args: Sequence[str]) -> bool:
    """Return whether a command line downloads something without a fixed version.

    Args:
        program: The name of the program, without directory.
        args: Its arguments.
    """
    rest = _launched(program, args)
    return rest is not None and any(not _is_fixed(program, one) for one in _packages(rest))


def names_package(program: str, args: Sequence[str]) -> bool:
    """Return whether a command line names a package or an image, which the directory it starts in
    has a part in: its `node_modules`, its `.npmrc`, what it mounts.

    Args:
        program: The name of the program, without directory.
        args: Its arguments.
    """
    rest = _launched(program, args)
    if rest is None:
        return False
    packages = _packages(rest)
    return not packages or not all(map(_is_file, packages))


def _launched(program: str, args: Sequence[str]) -> Sequence[str] | None:
    """Return the words behind `run`, `exec` and the like; None where nothing is launched."""
    for way in _DOWNLOADERS.get(program, ()):
        rest = _words_after(way.split(), args)
        if rest is not None:
            return rest
    return None


def _words_after(parts: Sequence[str], words: Sequence[str]) -> Sequence[str] | None:
    """Return the words behind a subcommand; options, each with or without a value, may precede."""
    at = 0
    for part in parts:
        is_option = False
        while at < len(words) and words[at] != part:
            if not is_option and not words[at].startswith("-"):
                return None
            is_option = words[at].startswith("-")
            at += 1
        if at == len(words):
            return None
        at += 1
    return words[at:]


def _packages(words: Sequence[str]) -> list[str]:
    """Return what a launcher would download: `--package`, else its first word."""
    named: list[str] = []
    first: str | None = None
    skip = False
    for at, word in enumerate(words):
        if skip:
            skip = False
            continue
        option, equals, value = word.partition("=")
        if option in _PACKAGE_OPTIONS:
            following = words[at + 1] if at + 1 < len(words) else ""
            named.append(value if equals else following)
            skip = not equals
        elif _OPTIONS_WITH_VALUE.fullmatch(option):
            skip = not equals
        elif not word.startswith("-"):
            first = word
            break
    return named or ([] if first is None else [first])


def _is_fixed(program: str, package: str) -> bool:
    """Return whether a package is named with one version, or is a file and no download."""
    if _is_file(package):
        return True
    if program in {"docker", "podman", "nerdctl"}:
        return "@sha256:" in package
    if "==" in package:
        return _VERSION.match(package.rpartition("==")[2]) is not None
    version = package.rpartition("@")[2] if "@" in package[1:] else ""
    return _VERSION.match(version) is not None


def _is_file(package: str) -> bool:
    named = package.startswith((".", "/", "~")) or package.endswith((".go", ".ts", ".js"))
    return named and "://" not in package
