"""Index and search a root of documents, in a process that has looked at none before."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from statistics import median

from fast_agent.resources.catalog import Catalog
from fast_agent.resources.guide.config import load_guide
from fast_agent.resources.guide.provider import GuideProvider
from fast_agent.resources.search import SearchIndex
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.resources.uri import Uri

INFO = ServerInfo("bench", "1")
LEAST = 500
"""Fewer bytes than any list of a guide has."""


def walk(root: str) -> int:
    """Visit every file, which is the least that an index takes."""
    count, pending = 0, [root]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


def main(root: str, count: int, queries: list[str]) -> None:
    start = time.perf_counter()
    walked = walk(root)
    least = time.perf_counter() - start
    provider = GuideProvider(load_guide(Path(root)))
    start = time.perf_counter()
    help_page = provider.read(Uri.parse("guide://help"))
    indexed = time.perf_counter() - start
    service = ResourceService(Catalog([GuideProvider(load_guide(Path(root)))]), INFO)
    session = service.open(lambda _method, _params: None, "2026-07-28")
    lists: list[float] = []
    for method in ("resources/templates/list", "resources/list"):
        start = time.perf_counter()
        if len(service.call(session, method, {}).json) < LEAST:
            sys.exit(f"`{method}` answered with too little")
        lists.append(time.perf_counter() - start)
    index = SearchIndex(Catalog([provider]))
    start = time.perf_counter()
    found = index.refresh()
    filled = time.perf_counter() - start
    searches: list[float] = []
    worked: list[float] = []
    for query in queries:
        start, before = time.perf_counter(), time.process_time()
        hits = index.search(query)
        searches.append(time.perf_counter() - start)
        worked.append(time.process_time() - before)
        if not hits:
            sys.exit(f"`{query}` found nothing")
    if not walked >= found >= count or not help_page:
        sys.exit(f"{found} of {count} documents are in the search index")
    times = {"walk": least, "index": indexed, "fill": filled, "search": median(searches)}
    more = {"templates": lists[0], "page": lists[1], "search_cpu": median(worked)}
    print(json.dumps({**times, **more}))


main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
