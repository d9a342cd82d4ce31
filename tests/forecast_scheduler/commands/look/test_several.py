from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from base.errors import InputError
from forecast_scheduler.cli import run
from forecast_scheduler.commands.look.several import chosen_clusters, clusters_table, failure_lines, look_at_each
from forecast_scheduler.reports.table_text import cells_of
from kube.client.cluster_access import ClusterAccess
from tests.forecast_scheduler.commands.look.made_look import made_look
from tests.kube.client.test_kubeconfig import written


@pytest.fixture
def access(tmp_path: Path) -> ClusterAccess:
    return ClusterAccess(written(tmp_path / "config", "prod-east", "prod-west", "test", "odd[1]", current="test"))


@pytest.mark.parametrize(
    ("contexts", "chosen"),
    [
        ([], [None]),
        (["test"], ["test"]),
        (["*"], ["prod-east", "prod-west", "test", "odd[1]"]),
        (["prod-*"], ["prod-east", "prod-west"]),
        (["test", "prod-west", "*t"], ["test", "prod-west", "prod-east"]),
        (["odd[1]"], ["odd[1]"]),
    ],
)
def test_contexts_are_names_or_patterns_and_each_comes_once(
    access: ClusterAccess, contexts: list[str], chosen: list[str | None]
) -> None:
    assert [one.context for one in chosen_clusters(access, contexts)] == chosen


def test_a_pattern_of_no_context_is_refused_with_those_that_there_are(access: ClusterAccess) -> None:
    with pytest.raises(InputError, match=r"no context 'stage-\*': it has prod-east, prod-west, test"):
        chosen_clusters(access, ["test", "stage-*"])


def test_a_cluster_that_fails_is_one_line_and_stops_no_other(access: ClusterAccess) -> None:
    def look(one: ClusterAccess) -> dict[str, Any]:
        if one.name() == "prod-east":
            raise InputError("no metrics store")
        if one.name() == "test":
            raise ZeroDivisionError("of ours")
        return made_look(one.name())

    said = io.StringIO()
    looks = list(look_at_each(chosen_clusters(access, ["prod-*", "test"]), look, Console(file=said)))
    assert said.getvalue().splitlines() == ["prod-east (1 of 3)", "prod-west (2 of 3)", "test (3 of 3)"]
    assert list(failure_lines(looks)) == ["prod-east: no metrics store", "test: ZeroDivisionError: of ours"]
    table = clusters_table(looks)
    failed, seen, _ = cells_of(table)
    assert table.title == "1 of 3 clusters"
    assert failed == ["prod-east", *["\u2013"] * 8]
    assert seen == ["prod-west", "3", "2", "2", "7.14 %", "1.23 %", "48", "30", "3,412"]


def test_the_exit_status_says_that_some_clusters_were_not_looked_at(
    access: ClusterAccess, capfd: pytest.CaptureFixture[str]
) -> None:
    line = ["look", "--kubeconfig", str(access.kubeconfig)]
    assert run([*line, "--context", "prod-*"]) == 1  # no server is there
    said = capfd.readouterr()
    assert "0 of 2 clusters" in said.out and said.out.count("does not answer") == 2
    assert run([*line, "--context", "prod-east"]) == 2


def test_a_page_that_cannot_be_written_is_refused_at_once(
    access: ClusterAccess, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["look", "--kubeconfig", str(access.kubeconfig), "--html", "nowhere/look.html"]) == 2
    assert "there is no directory nowhere" in capfd.readouterr().err


def test_a_recording_refuses_what_it_would_not_do(
    access: ClusterAccess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in (
        ["--html", str(tmp_path / "look.html")],
        ["--json", str(tmp_path / "look.json")],
        ["--prometheus", "http://x"],
        ["--output", "json"],
    ):
        assert run(["look", "--kubeconfig", str(access.kubeconfig), "--record", str(tmp_path / "to"), *option]) == 2
        assert "--record shows and writes nothing else" in " ".join(capsys.readouterr().err.split())
