"""The options of `fast-agent resources`: one table, from which both ways to read them are made.

`read_plainly` reads what is plainly right without the library that reads command lines, which
would be half of the time a server over stdio takes to start. Whatever it does not take, a wrong
option included, is left to that library.

What a directory brings in addition, skills and a guide, is found here too.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from fast_agent.config.home import (
    CONFIG_NAMES,
    GUIDE_FILE,
    home_directory,
    user_home,
    usual_skill_folders,
    working_directory,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fast_agent.app import FastAgent
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.guide.config import GuideConfig
    from fast_agent.resources.roots import ResourceRoots
    from fast_agent.resources.skill.files import NamePolicy, SkillJudge

SERVER_NAME = "fast-agent-resources"

Values: TypeAlias = "dict[str, str | bool | tuple[str, ...] | None]"


class Option(NamedTuple):
    """One option.

    Args:
        flag: As it is written.
        about: Its help.
        metavar: What its value is called; None for a switch, or where `choices` says it.
        choices: The values it may have; none for any.
        default: Its value where it is not given.
        many: Whether it may be given several times.
    """

    flag: str
    about: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    default: str | None = None
    many: bool = False

    @property
    def name(self) -> str:
        """Its name among the values."""
        return self.flag[2:].replace("-", "_")

    @property
    def switch(self) -> bool:
        """Whether it takes no value."""
        return self.metavar is None and not self.choices


ROOTS = (
    Option("--skills", "A directory of skills; may be given several times.", "DIR", many=True),
    Option("--guide", "A directory of documents, or a guide's file.", "DIR|FILE"),
    Option("--internal", "The documents that come with fast-agent."),
    Option(
        "--name-policy",
        "Skills whose name breaks a rule: `frontmatter` serves those under a name of their own,"
        " `strict` wants their folder's name, `lenient` serves all.",
        choices=("frontmatter", "strict", "lenient"),
        default="frontmatter",
    ),
    Option("--list-files", "List the supporting files of skills too."),
)
SERVE = (
    *ROOTS,
    Option("--no-load-skill", "Do not offer the tool `load_skill`."),
    Option("--no-embed-catalog", "Do not name the skills in the tool's description."),
    Option("--transport", "How clients connect.", choices=("stdio", "http"), default="stdio"),
    Option("--host", "The address to listen on (http).", "ADDRESS", default="127.0.0.1"),
    Option("--port", "The port to listen on; 0 for any free one (http).", "PORT", default="8000"),
    Option("--token-file", "A file with the bearer token that clients must send (http).", "FILE"),
    Option(
        "--allow-host",
        "Also accept requests for this host name; may be repeated (http).",
        "NAME",
        many=True,
    ),
    Option(
        "--allow-origin",
        "Allow web pages of this origin; may be repeated (http).",
        "ORIGIN",
        many=True,
    ),
    Option(
        "--trusted-proxy",
        "Take the client's address from X-Forwarded-For of this proxy or network; may be repeated "
        "(http).",
        "ADDRESS",
        many=True,
    ),
)


def http_option(values: Mapping[str, object]) -> str | None:
    """Return an option that was given and has no meaning over stdio."""
    names = ("token_file", "allow_host", "allow_origin", "trusted_proxy")
    return next((f"--{one.replace('_', '-')}" for one in names if values[one]), None)


def read_plainly(options: Sequence[Option], arguments: Sequence[str]) -> Values | None:
    """Read arguments that are plainly right.

    Args:
        options: The command's.
        arguments: What was given.

    Returns:
        Every option's value by name, or None where anything needs a closer look.
    """
    known = {option.flag: option for option in options}
    values: Values = {
        one.name: False if one.switch else () if one.many else one.default for one in options
    }
    rest = iter(arguments)
    for argument in rest:
        flag, equals, value = argument.partition("=")
        option = known.get(flag)
        if option is None:
            return None
        if option.switch:
            if equals:
                return None
            values[option.name] = True
            continue
        given = value if equals else next(rest, None)
        if given is None or (option.choices and given not in option.choices):
            return None
        before = values[option.name]
        values[option.name] = (*before, given) if isinstance(before, tuple) else given
    return values


def roots_of(values: Mapping[str, object], *, with_own: bool = True) -> ResourceRoots:
    """Return the roots that a command's values name, or those of this directory.

    Args:
        values: The values of the command's options.
        with_own: Whether skills in the user's home count beside those of this directory.
    """
    from fast_agent.resources.roots import ResourceRoots

    roots = ResourceRoots(
        skills=cast("tuple[str, ...]", values["skills"]),
        guide=cast("str | None", values["guide"]),
        internal=values["internal"] is True,
        name_policy=cast("NamePolicy", values["name_policy"]),
        list_files=values["list_files"] is True,
        load_skill=values.get("no_load_skill") is not True,
        embed_catalog=values.get("no_embed_catalog") is not True,
    )
    if not roots.empty:
        return roots
    here = resources_here()
    roots = roots.or_defaults_of(".", here.guide, user_home(os.environ), with_own=with_own)
    return roots._replace(judge=here.judge, guide=roots.guide if here.has_guide else None)


_SECTION = b"guide"
_MAX_BYTES = 1 << 20


class ResourcesHere(NamedTuple):
    """What may be offered of a directory.

    Args:
        guide: The guide of the configuration, the same that agents read here; None for none.
        judge: Decides which of the skills may be used; None where there are none.
        has_guide: Whether the `.guide.yaml` of the directory counts.
    """

    guide: GuideConfig | None = None
    judge: SkillJudge | None = None
    has_guide: bool = True


def resources_here(environ: Mapping[str, str] | None = None) -> ResourcesHere:
    """Decide about skills and guides that are found in the working directory.

    Args:
        environ: The environment; that of the process when None.

    Raises:
        ConfigError: The configuration is wrong, or its guide is.
    """
    environ = os.environ if environ is None else environ
    here, home = working_directory(), home_directory(environ)
    if not _may_bring_something(here, home, environ):
        return ResourcesHere()
    from fast_agent.app import FastAgent
    from fast_agent.cli.card_options import expect_cards
    from fast_agent.cli.output import report_left_out
    from fast_agent.resources.guide.config import configured_guide

    program = FastAgent(cwd=here, environ=environ)
    # Cards decide who else gets the skills, so the result is the one `go` has here.
    expect_cards(program, cards=())
    has_guide = expect_guide(program)
    guide = configured_guide(program.settings)
    program.admission.decisions.decide()
    for line in program.admission.decisions.lines():
        report_left_out(line)
    return ResourcesHere(
        guide,
        program.admission.skills,
        has_guide and program.admission.decisions.allows_guide(GUIDE_FILE),
    )


def expect_guide(program: FastAgent) -> bool:
    """Read the guide of the working directory, before it is decided about.

    Returns:
        Whether there is one.
    """
    from fast_agent.config.layer import read_layer

    file = program.workspace / GUIDE_FILE
    if not os.path.lexists(file):
        return False
    problems: list[Diagnostic] = []
    layer = read_layer(file, GUIDE_FILE, problems)
    if layer is not None:
        program.admission.expected.add_files(program.workspace, guides=[layer])
    return True  # one that cannot be read is an error where it is opened


def _may_bring_something(here: Path, home: Path, environ: Mapping[str, str]) -> bool:
    """Return whether there are skills or guides here at all.

    Reading the configuration takes longer than a server over stdio takes to start, and most
    directories have neither.
    """
    if any(name.upper().startswith("GUIDE__") for name in environ):
        return True
    skills = usual_skill_folders(here, user_home(environ), with_own=False)
    if any(map(os.path.lexists, (*skills, here / GUIDE_FILE))):
        return True
    for folder in (here, *here.parents, home):
        for name in CONFIG_NAMES:
            try:
                with open(folder / name, "rb") as file:  # noqa: PTH123  (this is on the way to start)
                    if _SECTION in file.read(_MAX_BYTES):
                        return True
            except OSError:
                continue  # none here, or none that can be read; reading it properly reports why
    return False
