from __future__ import annotations

import io

import pandas as pd
from rich.text import Text

from forecast_scheduler.reports.table_format import plain, titled_table
from forecast_scheduler.reports.table_text import csv_text, markdown_text


def test_a_csv_of_two_tables_is_one_that_pandas_reads() -> None:
    nodes = titled_table("2 of 2 nodes", "node", ">peak", ">pods")
    nodes.add_row(plain("node[0]"), Text("72.5 %", style="red"), "1,234")
    nodes.add_row("node-1", "\u2013", "0")
    services = titled_table("Services", "service", ">pods", "")
    services.add_row("shop/cart, or more", "3", "\u2588\u2588")
    read = pd.read_csv(io.StringIO(csv_text([nodes, services])))
    assert list(read.columns) == ["table", "node", "peak", "pods", "service", "pods (2)"]
    first = read[read.table == "2 of 2 nodes"].dropna(axis=1, how="all")
    assert first.node.tolist() == ["node[0]", "node-1"] and first.pods.tolist() == [1234, 0]
    assert first.peak[0] == 0.725 and first.peak.isna()[1]
    assert read[read.table == "Services"].service.tolist() == ["shop/cart, or more"]


def test_a_spreadsheet_computes_no_foreign_name() -> None:
    table = titled_table("t", "name", ">change")
    table.add_row("=1+2", "-3.5 %")
    assert csv_text([table]).splitlines()[1] == "t,'=1+2,-0.035"


def test_without_tables_there_is_no_csv() -> None:
    assert csv_text([]) == csv_text([titled_table("t", "name")]) == ""


def test_markdown_keeps_columns_and_names() -> None:
    table = titled_table("Pods of a_b", "name", ">pods")
    table.add_row("one|two", "3")
    assert markdown_text(table) == "### Pods of a\\_b\n\n| name | pods |\n| --- | ---: |\n| one\\|two | 3 |\n\n"
    assert markdown_text("say so") == "say so\n\n"
