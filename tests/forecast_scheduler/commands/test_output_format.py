"""`--output`: the figures of `--json`, alone on standard output."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest
import yaml

from forecast_scheduler.cli import run
from tests.forecast_scheduler.command_tree import commands
from tests.forecast_scheduler.recorded_evening import Evening, recorded_evening

_OTHERWISE = {"render"}
"""Commands whose --output means something else; they have --json."""


def test_every_command_with_json_has_it() -> None:
    options = {name: {one.name for one in command.params} for name, command in commands()}
    with_json = {name for name, names in options.items() if "json" in names}
    assert len(with_json) > 10
    assert {name for name in with_json if "output" not in options[name]} == set()
    assert {name for name, names in options.items() if "output" in names} - with_json == {"demo", "rules"}  # a file
    assert with_json >= _OTHERWISE


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("evening"))


RUNS_ON = ("models", "now")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nodes", "--cluster", "--models", "--at"),
        ("node", "node-0", "--cluster", "--models", "--at"),
        ("explain", "shop/cart-0", "--cluster", "--models", "--at"),
        ("models", "list", "--models"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_json_and_yaml_are_the_figures_of_json(
    arguments: tuple[str, ...], evening: Evening, capfd: pytest.CaptureFixture[str]
) -> None:
    given = dict(zip(evening.options()[::2], evening.options()[1::2], strict=True))
    line = [part for one in arguments for part in ((one, given[one]) if one in given else (one,))]

    def said(*more: str) -> str:
        capfd.readouterr()
        assert run([*line, *more]) == 0
        printed = capfd.readouterr()
        assert more[:1] == ("--json",) or not printed.err  # no table there either
        return printed.out

    def known(figures: dict[str, Any]) -> dict[str, Any]:
        """Without what is another at each run."""
        text = json.dumps(figures)
        return {name: value for name, value in json.loads(text).items() if "age" not in name and name not in RUNS_ON}

    plain = json.loads(said("--json", "-"))
    assert plain and known(json.loads(said("--output", "json"))) == known(plain)
    assert known(yaml.safe_load(said("-o", "yaml"))) == known(plain)
    assert "\u250f" in said()  # a table, as ever


def test_csv_and_markdown_are_the_tables_of_the_terminal(evening: Evening, capfd: pytest.CaptureFixture[str]) -> None:
    line = ["node", "node-0", *evening.options()]
    assert run([*line, "-o", "csv"]) == 0
    printed = capfd.readouterr()
    rows = list(csv.DictReader(printed.out.splitlines()))
    assert len({row["table"] for row in rows}) > 2 and None not in rows[0]
    services = [row for row in rows if row["table"] == "What makes the peak"]
    assert services and all(0 <= float(row["share"]) <= 1 for row in services)
    assert "nothing is moved" in printed.err  # what no table says
    assert run([*line, "-o", "markdown"]) == 0
    printed = capfd.readouterr()
    assert "| service | pods |" in printed.out and "nothing is moved" in printed.out and not printed.err
    assert run([*line, "-o", "csv", "--json", "-"]) == 2
