"""The server that the official conformance scenarios are run against.

The scenarios expect a few resources of the scheme `test` and some skills; both go through the same
core and edges as everything else.

Run: `python tests/conformance/server.py stdio|http SKILLS`; over HTTP the first line on standard
output is the address.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from fast_agent.resources.catalog import Catalog
from fast_agent.resources.problem import NotFound
from fast_agent.resources.resource import Resource, ResourceContent, ResourceTemplate
from fast_agent.resources.roots import ResourceRoots
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.resources.session import Change
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fast_agent.resources.provider import Document

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
)
TEMPLATE = "test://template/{id}/data"


class Scenes:
    """The resources the scenarios name."""

    scheme = "test"
    revision = 0

    def resources(self) -> Mapping[str, Resource]:
        """What is listed."""
        listed = [
            Resource(Uri.parse("test://static-text"), "static-text", mime_type="text/plain"),
            Resource(Uri.parse("test://static-binary"), "static-binary", mime_type="image/png"),
            Resource(Uri.parse("test://watched-resource"), "watched", mime_type="text/plain"),
        ]
        return {one.uri.text: one for one in listed}

    def templates(self) -> Sequence[ResourceTemplate]:
        """What is not."""
        return [ResourceTemplate(TEMPLATE, "template", mime_type="application/json")]

    def read(self, uri: Uri) -> Sequence[ResourceContent]:
        """Read one."""
        match uri.segments:
            case ("static-text",) | ("watched-resource",):
                text = b"This is the content of the static text resource."
                return [ResourceContent.of_bytes(uri, "text/plain", text)]
            case ("static-binary",):
                return [ResourceContent.of_bytes(uri, "image/png", PNG)]
            case ("template", name, "data"):
                text = f'{{"id":"{name}","templateTest":true,"data":"Data for ID: {name}"}}'
                return [ResourceContent.of_bytes(uri, "application/json", text.encode())]
            case _:
                raise NotFound(uri.text)

    def complete(
        self, template: str, argument: str, value: str, given: Mapping[str, str]
    ) -> Iterable[str]:
        """Complete an id."""
        if argument != "id":
            raise NotFound(argument, ["id"], what="argument")
        return [name for name in ("123", "124", "200") if name.startswith(value)]

    def documents(self) -> Iterable[Document]:
        """Nothing is searched."""
        return ()

    def places(self) -> Sequence[str]:
        """Nothing is on disk."""
        return ()

    def fingerprint(self, uri: Uri) -> str:
        """Nothing changes."""
        return uri.text

    def refresh(self) -> Change:
        """Nothing changes."""
        return Change()


def main(transport: str, skills: str) -> None:
    """Serve."""
    opened = ResourceRoots(skills=(skills,)).open()
    catalog = Catalog([*opened.catalog.providers, Scenes()])
    service = ResourceService(catalog, ServerInfo("conformance", "1.0"), opened.additions)
    if transport == "stdio":
        from fast_agent.resources.stdio import serve_stdio

        serve_stdio(service)
        return
    import anyio

    from fast_agent.serve.http import MCP_PATH, open_socket, serve_http
    from fast_agent.serve.http_access import HttpSettings
    from fast_agent.serve.resource_server import ResourceServer

    settings = HttpSettings(port=0)
    listening = open_socket(settings)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}{MCP_PATH}", flush=True)
    anyio.run(partial(serve_http, ResourceServer(service), settings, listening))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
