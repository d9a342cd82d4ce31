"""The committed dashboards are what the code makes, and what Grafana can load."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest

from dashboards.panels import files
from dashboards.panels.layout import TAG
from testing.processes.scorer_process import ROOT
from tests.dashboards.grafana_queries import annotation_queries, panel_queries, variable_queries

FOLDER = ROOT / "dashboards" / "grafana"
NAMES = ("gpu-and-jobs", "model", "peaks", "scheduling")


def dashboard(name: str) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{name}.json").read_text()))


def test_committed_files_are_what_the_code_makes() -> None:
    made = files()
    assert sorted(made) == [f"grafana/{name}.json" for name in NAMES]
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == list(NAMES)
    for path, text in made.items():
        assert (ROOT / "dashboards" / path).read_text() == text, f"{path}: run make dashboards"


def test_queries_for_one_cluster_of_several_select_it() -> None:
    for path, text in files({"k8s": "eu"}).items():
        narrowed, plain = json.loads(text), dashboard(path.split("/")[1].removesuffix(".json"))
        asked = [*panel_queries(path, narrowed), *annotation_queries(path, narrowed)]
        before = [*panel_queries(path, plain), *annotation_queries(path, plain)]
        for one, other in zip(asked, before, strict=True):
            assert 'k8s="eu"' in one.query and one.query.count('"$cluster"') == other.query.count('"$cluster"')
        variables = list(variable_queries(path, narrowed))
        assert all('k8s="eu"' in series for _, series, _ in variables)
        assert [label for *_, label in variables] == [label for *_, label in variable_queries(path, plain)]


def test_they_are_told_apart_and_link_to_each_other() -> None:
    all_of_them = [dashboard(name) for name in NAMES]
    assert len({one["uid"] for one in all_of_them}) == len({one["title"] for one in all_of_them}) == len(NAMES)
    for one in all_of_them:
        assert re.fullmatch(r"[a-z-]{1,40}", one["uid"])  # the longest that Grafana takes
        assert one["tags"] == [TAG] and "id" not in one  # an id is of one installation
        (link,) = one["links"]
        assert link["type"] == "dashboards" and link["tags"] == [TAG] and link["includeVars"] and link["keepTime"]


@pytest.mark.parametrize("name", NAMES)
def test_panels_have_a_place_of_their_own(name: str) -> None:
    panels = dashboard(name)["panels"]
    assert len({one["id"] for one in panels}) == len(panels)
    for one in panels:
        at = one["gridPos"]
        assert at["w"] > 0 and at["h"] > 0 and 0 <= at["x"] <= 24 - at["w"]
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        apart_x = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        apart_y = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert apart_x or apart_y, (one, other)


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_says_how_to_read_it(name: str) -> None:
    for panel in dashboard(name)["panels"]:
        if panel["type"] == "row":
            assert panel["title"] and not panel["collapsed"]
            continue
        defaults = panel["fieldConfig"]["defaults"]
        assert len(panel["description"]) > 20 and panel["description"].endswith("."), panel["title"]
        assert defaults["unit"], panel["title"]
        assert defaults["thresholds"]["steps"][0]["value"] is None
        values = [step["value"] for step in defaults["thresholds"]["steps"][1:]]
        assert values == sorted(values)
        assert panel["datasource"]["uid"] == "${datasource}"
        letters = [target["refId"] for target in panel["targets"]]
        assert letters and len(set(letters)) == len(letters)
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"
            assert bool(target.get("instant")) != bool(target.get("range"))


@pytest.mark.parametrize("name", NAMES)
def test_every_query_heeds_what_is_selected(name: str) -> None:
    """And every variable does something; all of them narrow to the cluster."""
    made = dashboard(name)
    known = {one["name"] for one in made["templating"]["list"]}
    assert {"datasource", "cluster"} <= known
    asked = [target["expr"] for panel in made["panels"] for target in panel.get("targets", [])]
    asked += [one["expr"] for one in made["annotations"]["list"]]
    used: set[str] = set()
    for query in asked:
        assert 'cluster=~"$cluster"' in query, query
        used |= set(re.findall(r"\$([a-z]+)", query))
    assert used == known - {"datasource"} | used & {"datasource"}, (used, known)
