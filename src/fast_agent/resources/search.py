"""Full-text search over documents, by heading: SQLite's FTS5 with BM25, headings weighed again.

The index is made when the first query comes, kept in a private temporary database, and brought up
to date by each document's stamp: only what changed is read again.

The tools that search and read the documents of a server are here too: most hosts pass a model the
tools of a server, and not its resources.
"""

from __future__ import annotations

import re
from collections import Counter
from math import log
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from fast_agent.resources.problem import NotFound
from fast_agent.resources.provider import Addition, ServedTool, ToolAnswer
from fast_agent.resources.resource import estimate
from fast_agent.resources.sections import excerpt, sections
from fast_agent.text.frontmatter import unfenced_lines
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from sqlite3 import Connection

    from fast_agent.resources.catalog import Catalog, Listing
    from fast_agent.resources.provider import Document
    from fast_agent.resources.resource import ResourceContent
    from fast_agent.resources.sections import Section
    from fast_agent.text.json_value import JsonObject

_MAX_CHUNK = 6000
_MAX_WORDS = 32
_MAX_WORD = 64
_HITS_PER_DOCUMENT = 2
_FRESH_SECONDS = 1.0
_LOOKING = 0.1
"""The most of its time that the index spends on looking at documents while queries come."""

_WORD = re.compile(r"\w")
_NAMES = re.compile(r"\w+")
_SPACES = re.compile(r"\s+")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can do does for from how i if in is it of on or that the this to"
        " use was what when where which who why will with you my me our your we us should would"
        " could want need must may might have has had been being there here its them they their not"
        " any some into about than then so but get gets let lets make makes give gives other others"
        " one such nor too very just see many much all each every also only come comes came",
    )
)
_ALIKE_GROUPS = """
abort cancel interrupt stop
add install
allow approve permission permit
begin launch start
bound cap limit maximum
bring import migrate
call invoke
color colour theme
compact compaction shorten summarize
concurrently parallel simultaneously
configuration configure option setting
continue resume
conversation history messages
convert export
copy duplicate fork
cost price spend usage
credential key secret token
delete discard erase forget remove
directory folder
display print show view
document documentation guide
download fetch pull
error fail failure problem wrong
fix recover repair salvage
follow tail watch
human people person user
majority sample vote
refresh reload
revert rewind undo
"""
_ENDING = re.compile(r"(?:e?s|e?d|ing|e)$")
_ALIKE = {
    _ENDING.sub("", word): tuple(other for other in line.split() if other != word)
    for line in _ALIKE_GROUPS.strip().splitlines()
    for word in line.split()
}
"""Words of which a reader asks with one and an author writes another, by their stems."""

_PROSE_FENCE = re.compile(r"^```text *\n(.*?)^``` *$", re.DOTALL | re.MULTILINE)
"""A fence around text that is not code, such as the help of a command."""
_CANDIDATES = 80
_PREFIX_FROM = 4
"""Words of so many letters find longer ones: `route` finds `router`."""

# How a hit is scored: found by trying questions about the packaged documents.
_HEADING = 3.0
"""What a heading adds whose words are all in the query, times how much these say."""
_COVERAGE = 4.0
"""What a section adds that has all words of the query, those that say little counted little: BM25
alone prefers one that repeats a single rare word."""
_NEAR = 4.0
"""What a section adds that has all neighbours in the query close to each other."""
_NEAR_WORDS = 4
_SECTION = 0.6
"""What a section loses by the logarithm of how many its document has: a long list of rules has a
section with nearly any words."""

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = MEMORY;
CREATE TABLE chunk (id INTEGER PRIMARY KEY, uri TEXT NOT NULL, title TEXT NOT NULL,
                    above TEXT NOT NULL, own TEXT NOT NULL, body TEXT NOT NULL, code TEXT NOT NULL,
                    heading TEXT NOT NULL, telling INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE INDEX chunk_uri ON chunk (uri);
CREATE VIRTUAL TABLE words USING fts5 (title, above, own, body, code,
                                       content='chunk', content_rowid='id',
                                       tokenize='porter unicode61 remove_diacritics 2');
"""
_INSERT = (
    "INSERT INTO chunk (id, uri, title, above, own, body, code, heading, telling, size)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_WORDS = "INSERT INTO words (rowid, title, above, own, body, code) VALUES (?, ?, ?, ?, ?, ?)"
_DELETE_WORDS = (
    "INSERT INTO words (words, rowid, title, above, own, body, code)"
    " SELECT 'delete', id, title, above, own, body, code FROM chunk WHERE uri = ?"
)
# Sorted by SQLite: sorted by `rank`, FTS5 would run a second statement for the same.
_QUERY = (
    "SELECT rowid, bm25(words, 2.0, 1.0, 2.0, 1.0, 0.3) AS score FROM words"
    " WHERE words MATCH ? ORDER BY score LIMIT ?"
)
# With the plus, FTS5 runs the match once, and not once for each row number.
_SNIPPETS = (
    "SELECT rowid, snippet(words, -1, '', '', '…', 24) FROM words"
    " WHERE words MATCH ? AND +rowid IN ({})"
)
_CHUNKS = "SELECT id, uri, telling FROM chunk WHERE id IN ({})"
_SHOWN = "SELECT id, title, heading, size FROM chunk WHERE id IN ({})"
_COUNT = (
    "SELECT count(*), group_concat(CASE WHEN rowid IN ({}) THEN rowid END)"
    " FROM words WHERE words MATCH ?"
)
_AMONG = "SELECT rowid FROM words WHERE words MATCH ? AND +rowid IN ({})"


class _Found(NamedTuple):
    """A section with its score, its number and the URI of its document."""

    score: float
    number: int
    uri: str


@frozen
class Hit:
    """A section that answers a query.

    Args:
        uri: The document's.
        title: The document's, or "".
        heading: The path of the section, `Setup > Linux`; "" above the first heading.
        snippet: The words around what was found, on one line.
        tokens: An estimate of what reading the section takes.
        score: Its rank; higher is better, comparable within one search only.
    """

    uri: str
    title: str
    heading: str
    snippet: str
    tokens: int
    score: float


class SearchIndex:
    """Searches the documents of a catalog.

    Args:
        catalog: What to search.
        clock: Seconds that only grow.
    """

    def __init__(self, catalog: Catalog, clock: Callable[[], float] = monotonic) -> None:
        self._catalog = catalog
        self._clock = clock
        self._database: Connection | None = None
        self._stamps: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._chunks = 0
        self._next = 1
        self._looked: tuple[Listing, float] | None = None
        self._lock = Lock()

    def search(self, query: str, limit: int = 10) -> tuple[Hit, ...]:
        """Find sections.

        A section needs not have all words of the query; those that few sections have count most,
        and those in its heading twice. Words need not be in the form the text has them in, and
        nothing in the query is syntax.

        Args:
            query: Words.
            limit: Maximum number of hits; at most two per document.

        Returns:
            The best first.
        """
        words = _words(query)
        if not words or limit < 1:
            return ()
        with self._lock:
            database = self._refreshed()
            asked = " OR ".join(word.query for word in words)
            rows = database.execute(_QUERY, (asked, max(_CANDIDATES, limit * 3))).fetchall()
            found = _best(self._ranked(database, words, rows), limit)
            return tuple(_hits(database, asked, found))

    def _ranked(
        self, database: Connection, words: list[_Word], rows: list[tuple[int, float]]
    ) -> list[_Found]:
        """Score the sections again, by headings and by how many sections a document has."""
        # The numbers are those of rows, and not of anything that was asked.
        numbers = ",".join(str(number) for number, _ in rows)
        matches = _Matches(database, words, numbers, self._chunks)
        chunks = {row[0]: row[1:] for row in database.execute(_CHUNKS.format(numbers))}
        found: list[_Found] = []
        for number, rank in rows:
            uri, telling = chunks[number]
            weights = matches.in_heading.get(number, ())
            share = min(1.0, len(weights) / max(1, telling))
            score = _HEADING * sum(weights) * share - rank
            covered, near = matches.covered.get(number, 0), matches.near.get(number, 0)
            score += (_COVERAGE * covered + _NEAR * near) / max(matches.total, 1e-9)
            score -= _SECTION * log(self._counts.get(uri, 1))
            found.append(_Found(score, number, uri))
        return sorted(found, key=lambda one: -one.score)

    def refresh(self) -> int:
        """Update the index now.

        Returns:
            How many documents are in it.
        """
        with self._lock:
            self._looked = None
            self._refreshed()
            return len(self._stamps)

    def close(self) -> None:
        """Drop the index; the next query makes another."""
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None
            self._looked = None
            self._stamps.clear()
            self._chunks = 0

    def _refreshed(self) -> Connection:
        database = self._database
        if database is None:
            from sqlite3 import connect
            from weakref import finalize

            database = self._database = connect("", isolation_level=None, check_same_thread=False)
            finalize(self, database.close)  # an unowned index is of no more use
            database.executescript(_SCHEMA)
        begun, looked = self._clock(), self._looked
        if looked is None or begun >= looked[1] or self._catalog.listing() is not looked[0]:
            self._looked = None
            changed = self._update(database)
            # Looking costs a stat for each document, so it is not done for each query.
            ended = self._clock()
            wait = 0 if changed else (ended - begun) * (1 / _LOOKING - 1)
            # Asked after the documents: a provider that has just scanned them does not scan again.
            self._looked = (self._catalog.listing(), ended + max(_FRESH_SECONDS, wait))
        return database

    def _update(self, database: Connection) -> bool:
        """Look at every document and read those that are not as before; say whether any was so."""
        changed = False
        database.execute("BEGIN")
        try:
            gone = dict.fromkeys(self._stamps)
            for document in self._catalog.documents():
                uri = document.uri.text
                known = self._stamps.get(uri)
                gone.pop(uri, None)
                if known == document.stamp:
                    continue
                changed = True
                if known is not None:
                    self._drop(database, uri)
                self._add(database, document)
            for uri in gone:
                self._drop(database, uri)
        except BaseException:
            # The database and the stamps must agree: start over next time.
            database.close()
            self._database, self._looked = None, None
            self._stamps.clear()
            self._chunks = 0
            raise
        database.execute("COMMIT")
        return changed or bool(gone)

    def _add(self, database: Connection, document: Document) -> None:
        text = document.text()
        self._stamps[document.uri.text] = document.stamp
        if text is None:
            return
        chunks = list(_chunks(text))
        title = document.title or next((one.name for one, _ in chunks if one.name), "")
        uri = document.uri.text
        shared = _shared({one.start: one.title for one, _ in chunks}.values())
        rows = [
            (
                number,
                uri,
                title,
                *_columns(one, body),
                one.name,
                _distinguishing_words(one, shared),
                len(body),
            )
            for number, (one, body) in enumerate(chunks, self._next)
        ]
        self._next += len(rows)
        self._chunks += len(rows)
        self._counts[uri] = len({one.start for one, _ in chunks})
        database.executemany(_INSERT, rows)
        database.executemany(_INSERT_WORDS, [(row[0], *row[2:7]) for row in rows])

    def _drop(self, database: Connection, uri: str) -> None:
        database.execute(_DELETE_WORDS, (uri,))
        self._chunks -= database.execute("DELETE FROM chunk WHERE uri = ?", (uri,)).rowcount
        self._stamps.pop(uri, None)
        self._counts.pop(uri, None)


def _columns(section: Section, text: str) -> tuple[str, str, str, str]:
    """Return what is indexed apart: headings above, the own one, prose, and code."""
    text = _PROSE_FENCE.sub(r"\1", text)
    prose = "\n".join(line for _, line in unfenced_lines(text))
    kept = set(prose.split("\n"))
    code = "\n".join(line for line in text.split("\n") if line not in kept)
    above = " ".join(section.path[:-1])
    # The heading of the first level is the title already.
    return above, "" if section.level == 1 else section.title, prose, code


def _chunks(text: str) -> Iterator[tuple[Section, str]]:
    """Sections and the texts below their headings, long ones in pieces."""
    for section in sections(text.replace("\0", " ")):
        body = text[section.start : section.own_end].replace("\0", " ")
        for start in range(0, len(body), _MAX_CHUNK):
            yield section, body[start : start + _MAX_CHUNK]


@frozen
class _Word:
    """A word of a query, quoted as FTS5 takes it, so that nothing in it is an operator.

    Args:
        exact: Finds the word itself.
        query: Finds also longer words, and those used for it.
    """

    exact: str
    query: str


def _words(query: str) -> list[_Word]:
    """Return the query's words, without those that say nothing unless there are no others."""
    words = [word[:_MAX_WORD] for word in query.replace("\0", " ").split() if _WORD.search(word)]
    telling = [word for word in words if _bare(word) not in _COMMON] or words
    return [_asked(word) for word in telling[:_MAX_WORDS]]


def _asked(word: str) -> _Word:
    exact = f'"{word.replace(chr(34), chr(34) * 2)}"'
    longer = "*" if len(word) >= _PREFIX_FROM and word.isalpha() else ""
    alike = _ALIKE.get(_ENDING.sub("", _bare(word)), ())
    return _Word(exact, f"({' OR '.join((exact + longer, *alike))})")


def _bare(word: str) -> str:
    return word.strip("?!.,:;").lower()


def _names(heading: str) -> list[str]:
    return [name.lower() for name in _NAMES.findall(heading)]


def _shared(headings: Collection[str]) -> frozenset[str]:
    """Find the words that a third of a document's headings have: `fast-agent` of its commands."""
    counts = Counter(name for heading in headings for name in set(_names(heading)))
    return frozenset(name for name, count in counts.items() if count > max(2, len(headings) / 3))


def _distinguishing_words(section: Section, shared: frozenset[str]) -> int:
    """Count the words that distinguish a heading from others: `The shell` is about one thing."""
    names = _names(section.title)
    return sum(name not in _COMMON and name not in shared for name in names) or len(names)


class _Matches:
    """Which words of a query some sections have, each by how few sections have it.

    Args:
        database: The index.
        words: The query's words.
        numbers: The sections, with commas between.
        sections: How many sections there are.

    Attributes:
        in_heading: For each section, the weights of the words in its heading.
        covered: For each section, the sum of the weights of the words anywhere in it.
        near: For each section, the sum of the weights of the query's neighbours that are close.
        total: The sum of the weights of all words that some section has.
    """

    def __init__(
        self, database: Connection, words: list[_Word], numbers: str, sections: int
    ) -> None:
        self.in_heading: dict[int, list[float]] = {}
        self.covered: dict[int, float] = {}
        self.near: dict[int, float] = {}
        self.total = 0.0
        counted, asked = _COUNT.format(numbers), _AMONG.format(numbers)
        before: tuple[_Word, float] | None = None
        for word in words:
            count, among = database.execute(counted, (word.query,)).fetchone()
            weight = log(1 + (sections - count + 0.5) / (count + 0.5)) if count else 0
            self.total += weight
            for number in map(int, among.split(",") if among else ()):
                self.covered[number] = self.covered.get(number, 0) + weight
            for (number,) in database.execute(asked, (f"own : {word.query}",)):
                self.in_heading.setdefault(number, []).append(weight)
            if before is not None:
                pair = f"NEAR({before[0].exact} {word.exact}, {_NEAR_WORDS})"
                for (number,) in database.execute(asked, (pair,)):
                    self.near[number] = self.near.get(number, 0) + min(before[1], weight)
            before = word, weight


def _best(ranked: Iterable[_Found], limit: int) -> list[_Found]:
    """Take the best, few of each document."""
    found: list[_Found] = []
    seen: Counter[str] = Counter()
    for one in ranked:
        seen[one.uri] += 1
        if seen[one.uri] <= _HITS_PER_DOCUMENT and len(found) < limit:
            found.append(one)
    return found


def _hits(database: Connection, asked: str, found: list[_Found]) -> Iterator[Hit]:
    """Describe what is returned; only that has a snippet, which costs more than being found."""
    numbers = ",".join(str(one.number) for one in found)
    snippets = dict(database.execute(_SNIPPETS.format(numbers), (asked,)).fetchall())
    shown = {row[0]: row[1:] for row in database.execute(_SHOWN.format(numbers))}
    for one in found:
        title, heading, size = shown[one.number]
        snippet = _SPACES.sub(" ", snippets[one.number]).strip()
        yield Hit(one.uri, title, heading, snippet, estimate(size), one.score)


SEARCH: Final = "resource_search"
READ: Final = "resource_read"
_HITS: Final = 8
_MAX_CHARACTERS: Final = 60_000
_READ_ONLY: Final[JsonObject] = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}
_INSTRUCTIONS: Final = (
    "This server has documents. Look for what you need with the tool `resource_search`, then read"
    " it by URI with `resource_read`, a section at a time where it is long."
)


def catalog_addition(catalog: Catalog) -> Addition:
    """Return the tools that search and read documents, for hosts that pass a model no resources.

    Args:
        catalog: All documents of the server.
    """
    tools = tuple(_tools(CatalogTools(catalog)))
    return Addition(tools=lambda: tools, instructions=_INSTRUCTIONS)


class CatalogTools:
    """Answers the tools over a catalog.

    Args:
        catalog: The documents.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._index: SearchIndex | None = None

    def search(self, arguments: JsonObject) -> ToolAnswer:
        """Answer `resource_search`: the sections that fit best."""
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            return ToolAnswer.of_text("`query` must hold the words to search for", is_error=True)
        if self._index is None:
            self._index = SearchIndex(self._catalog)
        hits = self._index.search(query, _HITS)
        if not hits:
            return ToolAnswer.of_text("nothing found; try other words")
        lines = [
            f"{hit.uri} § {hit.heading or hit.title} (about {hit.tokens} tokens): {hit.snippet}"
            for hit in hits
        ]
        return ToolAnswer.of_text("\n".join(lines))

    def read(self, arguments: JsonObject) -> ToolAnswer:
        """Answer `resource_read`: a document, or one section of it, in pieces where it is long."""
        uri, section = arguments.get("uri"), arguments.get("section")
        offset = arguments.get("offset", 0)
        if not isinstance(uri, str):
            return ToolAnswer.of_text("`uri` must be a string", is_error=True)
        if section is not None and not isinstance(section, str):
            return ToolAnswer.of_text("`section` must be a string", is_error=True)
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            return ToolAnswer.of_text("`offset` must be a number of characters", is_error=True)
        blocks: list[JsonObject] = []
        for content in self._catalog.read(uri):
            blocks += _blocks(content, section, offset)
        if not blocks:
            raise NotFound(uri)
        return ToolAnswer(tuple(blocks))


def _blocks(content: ResourceContent, section: str | None, offset: int) -> list[JsonObject]:
    if content.text is None:
        return [{"type": "resource", "resource": content.data}]
    part = excerpt(
        content.uri.text,
        content.text,
        section_name=section,
        offset=offset,
        max_chars=_MAX_CHARACTERS,
    )
    blocks: list[JsonObject] = [{"type": "text", "text": part.text}]
    if part.note is not None:
        blocks.append({"type": "text", "text": f"[{part.note}]"})
    return blocks


def _tools(tools: CatalogTools) -> tuple[ServedTool, ServedTool]:
    query: JsonObject = {"type": "string", "description": "Words to search for, or a question."}
    uri: JsonObject = {"type": "string", "description": "The document, as a search gives it."}
    section: JsonObject = {
        "type": "string",
        "description": "A heading, to read only what is below it: what stands after § in a search.",
    }
    offset: JsonObject = {
        "type": "integer",
        "minimum": 0,
        "description": "Characters to skip, to continue a long document.",
    }
    search = ServedTool(
        SEARCH,
        "Search the documents of this server. Gives the sections that fit best, with their URIs.",
        _schema({"query": query}, "query"),
        tools.search,
        "Search documents",
        _READ_ONLY,
    )
    read = ServedTool(
        READ,
        "Read a document of this server by its URI, whole or one section of it.",
        _schema({"uri": uri, "section": section, "offset": offset}, "uri"),
        tools.read,
        "Read a document",
        _READ_ONLY,
    )
    return search, read


def _schema(properties: JsonObject, required: str) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": [required],
        "additionalProperties": False,
    }
