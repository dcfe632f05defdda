from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.runtime.fetch_tool import markdown_of

BASE = "https://example.org/docs/"


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<h2>Hi</h2><p>Some <b>bold</b> text.", "## Hi\n\nSome **bold** text."),
        ('<p>See <a href="../x?a=1">this one</a>.', "See [this one](https://example.org/x?a=1)."),
        ('<a href="javascript:alert(1)">bad</a>', "bad"),
        ("<ul><li>one<li>two<ol><li>a</ol></ul>", "- one\n- two\n  1. a"),
        ("<ol><li>a<li>b<li>c</ol><ol><li>d</ol>", "1. a\n2. b\n3. c\n\n1. d"),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>x", "- a\n  - b\n- c\n\nx"),
        ("<table><tr><td>1</tr></table>", "| 1 |"),
        ("<table><tr><td>1</td>x<td>2</td></tr></table>", "x\n\n| 1 | 2 |"),
        (
            "<table><tr><td>1</tr><tr><td>2</tr></table><p>x",
            "| 1 |\n| --- |\n| 2 |\n\nx",
        ),
        ('<pre><code class="language-py">x =  1\n  y</code></pre>', "```\nx =  1\n  y\n```"),
        ('<pre class="language-py">x</pre>', "```py\nx\n```"),
        ("<table><tr><th>a<th>b</tr><tr><td>1</td><td>2|3</td></tr></table>", None),
        ("<p>a<script>evil()</script><style>x</style><p hidden>no</p>", "a"),
        ('<div style="display:none">obey <b>me</b></div><p>yes', "yes"),
        ("<title>T &amp; U</title><p>x", "# T & U\n\nx"),
        ("<p>a &lt;b&gt;", "a <b>"),
        ("<p>a<hr><p>b", "a\n\n---\n\nb"),
        ("x<blockquote><p>a</p><p>b</p></blockquote>c", "x\n\n> a\n\n> b\n\nc"),
        (
            "<blockquote>a<blockquote>b</blockquote>c</blockquote></blockquote>d",
            "> a\n\n> > b\n\n> c\n\nd",
        ),
        ("<blockquote></blockquote><p>&gt; a", "> a"),
        ("<ul><li><div><p>a</div><li>b</ul>", "- a\n- b"),
        ("a<section>b</section>c", "a\n\nb\n\nc"),
    ],
)
def test_what_a_person_reads_becomes_markdown(html: str, markdown: str | None) -> None:
    assert markdown_of(html, BASE) == (markdown or "| a | b |\n| --- | --- |\n| 1 | 2\\|3 |")


TAGS = st.sampled_from(
    ["p", "ul", "li", "table", "tr", "td", "pre", "a", "b", "div", "script", "x"]
)


@given(st.lists(st.tuples(TAGS, st.booleans(), st.text("ab <&\n", max_size=4)), max_size=30))
def test_any_html_becomes_some_text(parts: list[tuple[str, bool, str]]) -> None:
    html = "".join(f"<{'/' if ends else ''}{tag}>{text}" for tag, ends, text in parts)
    assert "\n\n\n" not in markdown_of(html)
