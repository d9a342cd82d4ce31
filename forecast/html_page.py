"""The frame that every HTML report shares: one file that needs nothing else and may ask nothing. Pure string work."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

# What is in the file runs, and nothing is fetched from anywhere: a report tells a lot about a cluster.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)

_STYLE = """
:root { --ink: #2b2d42; --soft: #6b7280; --line: #e6eaee; --good: #1f7a8c; --bad: #c8553d; --paper: #f4f6f8;
        --card: white; --ours: #eef6f7; }
body { margin: 0; background: var(--paper); color: var(--ink);
       font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 36px 24px 60px; }
h1 { font-size: 27px; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 18px; margin: 0 0 4px; }
p { margin: 0 0 12px; color: var(--soft); max-width: 100ch; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 22px 24px;
          margin-top: 20px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(230px, 1fr)); gap: 16px; margin-top: 22px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 16px 20px; }
.tile small { color: var(--soft); display: block; }
.tile b { font-size: 27px; font-weight: 650; font-variant-numeric: tabular-nums; }
.tile .was { color: var(--bad); } .tile .is { color: var(--good); } .tile .to { color: var(--soft); font-weight: 400; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 7px 7px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; color: var(--soft); font-size: 13px; } th:first-child, td:first-child { text-align: left; }
td i { color: var(--soft); font-style: normal; font-size: 12px; margin-left: 4px; }
tr.ours td { background: var(--ours); font-weight: 600; }
footer { color: var(--soft); font-size: 13px; margin-top: 22px; }
"""


def html_page(title: str, body: str, *, scripts: Sequence[str] = (), style: str = "") -> str:
    """A whole page.

    title   : plain text
    body    : HTML; whoever makes it escapes the names in it
    scripts : JavaScript that is there before the body
    style   : further CSS
    """
    inline = "".join(f"<script>{script}</script>\n" for script in scripts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}{style}</style>
{inline}</head>
<body><main>
{body}
</main></body></html>
"""


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """A table of plain texts, all of which are escaped here.

    left : so many of the first columns hold words and are aligned to the left
    """

    def row(tag: str, cells: Sequence[str]) -> str:
        return (
            "<tr>"
            + "".join(
                f"<{tag}{' style=text-align:left' if index < left else ''}>{escape(cell)}</{tag}>"
                for index, cell in enumerate(cells)
            )
            + "</tr>"
        )

    return f"<table>{row('th', header)}{''.join(row('td', cells) for cells in rows)}</table>"


def json_script(element_id: str, value: Any) -> str:
    """Data for a script of the page. No text in it can end the element: < and > are written \\u003c and \\u003e."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{escape(element_id)}">{text}</script>'
