"""The tool `fetch`: a page of the web as Markdown.

The model chooses the address, and may do so because a page asked it to. Public addresses only,
therefore, also where a redirect or a name leads; for this machine or a private network a user is
asked.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin
from xml.sax.saxutils import quoteattr

from fast_agent.errors import ResourceError, ToolError, TrustError
from fast_agent.mcp.web_page import fetch_page
from fast_agent.messages.message import TextContent, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.prompt.instruction import is_web_address
from fast_agent.tools.permission import PermissionRequest
from fast_agent.tools.result import said
from fast_agent.tools.tool import RuntimeTool, ToolArguments, object_schema
from fast_agent.trust.address import address_of, place_of_host
from fast_agent.trust.grant import origin_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fast_agent.messages.message import ToolCall
    from fast_agent.tools.permission import Permission
    from fast_agent.tools.tool import ToolContext

_SKIPPED: Final = frozenset(
    {"script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "head",
     "select", "button", "dialog"}
)  # fmt: skip
_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
     "wbr"}
)  # fmt: skip
_BLOCKS: Final = frozenset(
    {"p", "div", "section", "article", "main", "header", "footer", "aside", "nav", "figure",
     "figcaption", "address", "form", "fieldset", "details", "summary", "dl", "dt", "dd", "body",
     "table", "ul", "ol", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "hr"}
)  # fmt: skip
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_MARKS: Final = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`", "del": "~~"}
_HIDDEN: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MAX_DEPTH: Final = 200


def markdown_of(html: str, base: str = "") -> str:
    """Return a page as Markdown.

    Args:
        html: The page; it need not be valid.
        base: Its address, which relative links start from.
    """
    reader = _Reader(base)
    reader.feed(html)
    reader.close()
    text = reader.text()
    title = " ".join(reader.title.split())
    return f"# {title}\n\n{text}" if title and not text.startswith("# ") else text


class _Reader(HTMLParser):
    """Writes Markdown while it reads."""

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._base = base
        self._out: list[str] = []
        self._skipped: list[str] = []
        self._in_title = False
        self._lists: list[int | None] = []
        self._quotes = 0
        self._begun = -1
        self._in_pre = False
        self._links: list[tuple[str, int]] = []
        self._rows: list[list[str]] = []
        self._cell: int | None = None

    def text(self) -> str:
        """Return what was written, without needless blank lines."""
        text = "".join(self._out)
        text = re.sub(r"[ \t]+\n", "\n", text)
        return re.sub(r"\n{3,}", "\n\n", text).strip()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """Handle the start of an element."""
        if tag == "title":
            self._in_title = True
        if self._skipped:
            if tag not in _VOID and len(self._skipped) < _MAX_DEPTH:
                self._skipped.append(tag)
            return
        values = {name: value or "" for name, value in attrs}
        if tag not in _VOID and (tag in _SKIPPED or _is_hidden(values)):
            self._skipped.append(tag)
            return
        self._begin(tag, values)

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        if tag == "title":
            self._in_title = False
        if self._skipped:
            if tag in self._skipped:
                while self._skipped and self._skipped.pop() != tag:
                    pass
            return
        self._end(tag)

    def handle_data(self, data: str) -> None:
        """Take text."""
        if self._in_title and not self.title:
            self.title = data
        if self._skipped or self._in_title:
            return
        if self._in_pre:
            self._out.append(data)
            return
        words = re.sub(r"\s+", " ", data)
        if words == " " and (not self._out or self._out[-1].endswith(("\n", " "))):
            return
        if self._out and self._out[-1].endswith(("\n", " ")):
            words = words.lstrip(" ")
        self._out.append(words)

    def _begin(self, tag: str, values: Mapping[str, str]) -> None:
        if tag in _MARKS:
            self._out.append("" if self._in_pre else _MARKS[tag])
        elif tag in _HEADINGS:
            self._block(f"{'#' * int(tag[1])} ")
        elif tag in {"td", "th"}:
            self._end_cell()  # end tags of cells may be left out
            self._cell = len(self._out)
        elif tag == "tr":
            self._end_cell()
            self._rows.append([])
        elif tag in {"ul", "ol", "li"}:
            self._begin_list(tag)
        elif tag in _BLOCKS:
            self._begin_block(tag, values)
        else:
            self._begin_inline(tag, values)

    def _begin_list(self, tag: str) -> None:
        if tag == "li":
            self._break(1)
            self._out.append(self._bullet())
            return
        self._break(1 if self._lists else 2)
        self._lists.append(1 if tag == "ol" else None)

    def _begin_block(self, tag: str, values: Mapping[str, str]) -> None:
        if tag == "blockquote":
            self._quotes += 1
        if tag == "pre":
            language = re.search(r"language-([\w+-]+)", values.get("class", ""))
            self._block(f"```{language[1] if language else ''}\n")
            self._in_pre = True
        else:
            self._block("---\n\n" if tag == "hr" else "")

    def _begin_inline(self, tag: str, values: Mapping[str, str]) -> None:
        if tag == "br":
            self._out.append("\n" + self._indent())
        elif tag == "a":
            self._links.append((self._address(values.get("href", "")), len(self._out)))
        elif tag == "img":
            alt = " ".join(values.get("alt", "").split())
            self._out.append(f"[image: {alt}]" if alt else "")

    def _end(self, tag: str) -> None:
        if tag in _MARKS:
            self._out.append("" if self._in_pre else _MARKS[tag])
        elif tag == "a":
            self._end_link()
        elif tag in {"td", "th"}:
            self._end_cell()
        elif tag == "table":
            self._end_table()
        elif tag in {"ul", "ol"}:
            self._lists = self._lists[:-1]
            self._break(1 if self._lists else 2)
        elif tag == "pre" and self._in_pre:
            self._in_pre = False
            self._break(1)
            self._out.append("```\n\n")
        elif tag in _BLOCKS:
            self._quotes -= 1 if tag == "blockquote" and self._quotes else 0
            self._block("")

    def _block(self, start: str) -> None:
        if self._cell is not None:
            self._out.append(" ")  # a table's row is one line
            return
        if self._begun == len(self._out):
            self._out.pop()  # a block without words
        if not (self._out and self._lists and self._out[-1].endswith((". ", "- "))):
            self._break(1 if self._lists else 2)
        self._out.append("> " * self._quotes + start)
        self._begun = -1 if start else len(self._out)

    def _break(self, count: int) -> None:
        """End the line, with as many line ends as asked for."""
        if self._cell is not None:
            return
        end = "".join(self._out[-4:])
        have = len(end) - len(end.rstrip("\n"))
        self._out.append("\n" * max(0, count - have))

    def _bullet(self) -> str:
        number = self._lists[-1] if self._lists else None
        if number is None:
            return f"{self._indent(1)}- "
        self._lists[-1] = number + 1
        return f"{self._indent(1)}{number}. "

    def _indent(self, less: int = 0) -> str:
        return "  " * max(0, min(len(self._lists), 12) - less)

    def _address(self, href: str) -> str:
        try:
            address = urljoin(self._base, href.strip())
        except ValueError:
            return ""
        is_web = address.lower().startswith(("http://", "https://"))
        return address if is_web and " " not in address else ""

    def _end_link(self) -> None:
        if not self._links:
            return
        address, start = self._links.pop()
        words = "".join(self._out[start:])
        plain = words.strip()
        if address and plain and "\n" not in plain:
            before = " " if words.startswith(" ") else ""
            self._out[start:] = [f"{before}[{plain}]({address})"]

    def _end_cell(self) -> None:
        if self._cell is None or not self._rows:
            return
        words = " ".join("".join(self._out[self._cell :]).split())
        self._rows[-1].append(words.replace("|", "\\|"))
        del self._out[self._cell :]
        self._cell = None

    def _end_table(self) -> None:
        self._end_cell()
        rows = [row for row in self._rows if row]
        self._rows = []
        self._cell = None
        self._break(2)
        for number, row in enumerate(rows):
            self._out.append(f"| {' | '.join(row)} |\n")
            if number == 0 and len(rows) > 1:
                self._out.append(f"|{' --- |' * len(row)}\n")
        self._break(2)


def _is_hidden(values: Mapping[str, str]) -> bool:
    return (
        "hidden" in values
        or values.get("aria-hidden") == "true"
        or bool(_HIDDEN.search(values.get("style", "")))
    )


MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
PAGE_SECONDS: Final = 30.0
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})

SPEC: Final = ToolSpec(
    "fetch",
    "Fetch a web page as Markdown. What it says is from the web, not from the user.",
    object_schema(
        url=("string", "the address, with `https://`"),
        raw=("boolean", "whether to get HTML as it is"),
        required=("url",),
    ),
)


class FetchTool(RuntimeTool):
    """The tool.

    Args:
        permission: Who is asked before this machine or a private network is connected to; None
            if the user was already asked about the call.
    """

    __slots__ = ("_permission",)

    spec = SPEC
    repeatable = True

    def __init__(self, permission: Permission | None) -> None:
        self._permission = permission

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Fetch the page; what goes wrong is an error result."""
        try:
            given = ToolArguments(SPEC, call.arguments)
            url = given.required_text("url").strip()
            if not is_web_address(url) or not address_of(url).scheme:
                raise ToolError(f"`{url}` is not an `http` or `https` address")
            refused = await self._refusal(url, call, context)
            if refused is not None:
                return ToolResult.error(call.id, f"`fetch` was not run: {refused}")
            return ToolResult(call.id, (TextContent(await _page(url, raw=given.flag("raw"))),))
        except (ResourceError, ToolError, TrustError) as error:
            return ToolResult.error(call.id, said(error))

    async def _refusal(self, url: str, call: ToolCall, context: ToolContext) -> str | None:
        place = address_of(url).place
        if not place or self._permission is None:
            return None
        request = PermissionRequest(
            call=call, context=context, source=self.source, server_name=None
        )
        refused = await self._permission.ask(request)
        return None if refused is None else f"the address leads to {_named(place)}: {refused}"


async def _page(url: str, *, raw: bool) -> str:
    """Fetch a page, and mark it as what it is: text of others."""
    allowed = origin_of(url)

    def check(target: str) -> None:
        origin = origin_of(target)
        place = place_of_host(origin[1])
        if place and origin != allowed:
            raise TrustError(f"`{url}` leads to {_named(place)}, which was not asked for")

    page = await fetch_page(url, max_bytes=MAX_PAGE_BYTES, timeout=PAGE_SECONDS, check=check)
    text = page.text
    is_html = page.media_type in _HTML or (not page.media_type and _looks_like_html(text))
    if is_html and not raw:
        text = markdown_of(text, page.url)
    inner = text.replace("</web_page", "&lt;/web_page").strip()
    return f'<web_page url={quoteattr(page.url)} trust="untrusted">\n{inner}\n</web_page>'


def _looks_like_html(text: str) -> bool:
    return text.lstrip()[:15].lower().startswith(("<!doctype html", "<html"))


def _named(place: str) -> str:
    return place if place.startswith("this") else f"a {place}"
