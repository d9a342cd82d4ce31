from __future__ import annotations

import io

import pandas as pd

from forecast_scheduler.commands.look.details import in_full
from forecast_scheduler.commands.look.look_page import look_page
from forecast_scheduler.reports.table_text import csv_text, markdown_text
from tests.forecast_scheduler.commands.look.made_look import made_look


def test_the_page_of_one_cluster_has_what_the_screen_has_and_the_details() -> None:
    page = look_page([made_look()])
    for text in (
        "A look at prod-east",
        "2 of 3",  # nodes tonight
        "width: 86.7%; background: var(--full)",  # 104 % on a scale that ends at 120 %
        "104 % of cpu at 20:00, bound 125 %: shop-of-a-long-name/checkout-with-payments 50 %",
        "1 move: 9 -&gt; 2 hot node half hours",
        "node-1 would be hot at 20:00",
        "3,412 EUR a month for 3 nodes (estimate; 3 nodes by settings)",
        "14 whole local days. What to do: run train each night.",
        "forecast-scheduler train --context prod-east",
    ):
        assert text in page, text
    assert "<script" not in page and "1 of 1 clusters" not in page


def test_the_page_of_several_clusters_begins_with_their_table_and_has_failures() -> None:
    page = look_page([made_look("<east>"), {"cluster": "west", "error": "no metrics store"}])
    assert page.index("1 of 2 clusters") < page.index("&lt;east&gt;: 3 nodes")
    assert "It could not be looked at: no metrics store" in page
    assert "<east>" not in page


def test_a_section_that_could_not_be_computed_says_why() -> None:
    look = made_look() | {"moves": None, "week": None, "not_computed": {"moves": "no forecast", "week": "too short"}}
    page = look_page([look])
    assert "not known: no forecast" in page and "not known: too short" in page


def test_csv_and_markdown_have_every_row() -> None:
    parts = list(in_full(made_look()))
    rows = pd.read_csv(io.StringIO(csv_text(part for part in parts if not isinstance(part, str))))
    tonight = rows[rows.table == "Tonight"]
    assert tonight.node.tolist() == ["node-1", "node-2", "node-3"]
    assert tonight.peak.tolist()[:2] == [1.04, 0.85] and tonight.peak.isna().tolist()[2]
    assert rows[rows.table == "What is uncertain"].finding.tolist() == ["short history", "no holidays"]
    text = "".join(map(markdown_text, parts))
    assert "| node-1 | 104 % |" in text and "### 1 moves" in text
