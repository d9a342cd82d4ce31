from __future__ import annotations

from pathlib import Path

import pytest

from autoscaling.prices.price_file import parse_prices, read_price_file
from base.errors import InputError
from tests.autoscaling.prices.priced_nodes import node

HEAD = "nodes,per_hour,currency\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_file_of_a_month_is_read_in_what_spreadsheets_write(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "prices.csv"
    path.write_bytes('nodes;per_month;currency\r\nm5.large;73.00;EUR\r\n"8 cores, 32 GiB";730;EUR\r\n'.encode(encoding))
    prices = read_price_file(path, "EUR")
    of_type, of_group = prices.price_of(node("n", "m5.large")), prices.price_of(node("n", "", 8, 32))
    assert of_type is not None and of_type.per_hour == pytest.approx(0.1) and of_type.source == "file prices.csv"
    assert of_group is not None and of_group.per_hour == 1.0


def test_quoted_groups_tabs_blank_lines_and_further_columns_are_read() -> None:
    assert parse_prices(HEAD + '\n"8 cores, 32 GiB",0.4,EUR\n', "EUR", "p") == {"8 cores, 32 GiB": 0.4}
    assert parse_prices("Team\tnodes\tper_hour\tcurrency\nx\ta\t1e-1\tEUR\n", "EUR", "p") == {"a": 0.1}
    assert parse_prices(HEAD, "EUR", "p") == {}


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ('m5.large,"1,234.50",EUR', "without separators"),
        ("m5.large,-0.1,EUR", "per_hour is '-0.1'"),
        ("m5.large,NaN,EUR", "per_hour is 'NaN'"),
        ("m5.large,inf,EUR", "per_hour is 'inf'"),
        ("m5.large,1e9,EUR", "per_hour is '1e9'"),
        ("m5.large,0x10,EUR", "per_hour is '0x10'"),
        ("m5.large,٣,EUR", "per_hour is '٣'"),
        ("m5.large,,EUR", "per_hour is ''"),
        ("m5.large,0.1,XYZ", "currency is 'XYZ', the report is in EUR"),
        ("m5.large,0.1,€", "currency is '€'"),
        ("m5.large,0.1", "currency is ''"),
        (",0.1,EUR", "nodes is empty"),
        ("a b=c,0.1,EUR", "label selector"),
        ("ok,0.2,EUR", "has a price already"),
    ],
)
def test_each_row_that_cannot_be_used_is_named_by_its_line(row: str, says: str) -> None:
    with pytest.raises(InputError, match="price file p cannot be used: line 3: ") as refused:
        parse_prices(f"{HEAD}ok,0.1,EUR\n{row}\nfine,0.3,EUR\n", "EUR", "p")
    assert says in str(refused.value)


def test_of_many_bad_rows_some_are_named_and_the_rest_counted() -> None:
    with pytest.raises(InputError, match=r"line 2: .*line 6: .*and 3 more lines"):
        parse_prices(HEAD + "a,x,EUR\n" * 8, "EUR", "p")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "of an empty line"),
        ("nodes,price,currency\na,1,EUR\n", "'price'"),
        ("nodes,per_hour,per_month,currency\n", "one of per_hour and per_month"),
        (HEAD + '"a,0.1,EUR\n', "line 2"),
    ],
)
def test_a_file_without_the_columns_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_prices(text, "EUR", "p")


def test_a_file_in_another_code_page_or_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    with pytest.raises(InputError, match="No such file"):
        read_price_file(path, "EUR")
    path.write_bytes(HEAD.encode() + "größe,1,EUR".encode("cp1252"))
    with pytest.raises(InputError, match="not UTF-8: byte 26"):
        read_price_file(path, "EUR")
