"""The options of `fast-agent resources`: one table, from which both ways to read them are made.

`read_plainly` reads what is plainly right without the library that reads command lines, which
would be half of the time a server over stdio takes to start. Whatever it does not take, a wrong
option included, is left to that library.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fast_agent.resources.roots import ResourceRoots
    from fast_agent.resources.skill.options import NamePolicy

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
)


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
    from fast_agent.cli.resources_here import resources_here
    from fast_agent.config.home import user_home

    here = resources_here()
    roots = roots.or_those_of(".", here.guide, user_home(os.environ), with_own=with_own)
    return roots._replace(judge=here.judge, guide=roots.guide if here.has_guide else None)
