"""`policy check` from beginning to end: a document alone, and held against a recorded evening."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from forecast_scheduler.cli import run
from tests.forecast_scheduler.recorded_evening import Evening, recorded_evening

OURS = "forecast-scheduler.io/"
STACK: dict[str, Any] = {"filters": [], "scores": {"weights": {"most_allocated": 1}}}
DOCUMENT: dict[str, Any] = {
    "default": "balanced",
    "policies": {"balanced": {"description": "as in the settings"}, "stack": STACK},
    "rules": [{"policy": "stack", "namespaces": ["shop"]}],
}


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    """Three carts, two searches and a mail on two nodes, of which node-1 belongs to a machine group."""
    evening = recorded_evening(tmp_path_factory.mktemp("evening"))
    document = json.loads(evening.cluster.read_text())
    for item in document["items"]:
        if item["kind"] == "Node" and item["metadata"]["name"] == "node-1":
            item["metadata"]["labels"] = {OURS + "machine-group": "batch"}
        if item["kind"] == "Pod" and item["metadata"]["name"] == "mail-0":
            item["metadata"]["annotations"] = {OURS + "policy": "stakc"}
    evening.cluster.write_text(json.dumps(document))
    return evening


def written(directory: Path, document: Any, name: str = "policies.yaml") -> str:
    path = directory / name
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return str(path)


def checked(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    status = run(["policy", "check", *arguments, "--json", "-"])
    said = capfd.readouterr()
    assert status == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def refused(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    capfd.readouterr()
    assert run(["policy", "check", *arguments]) == 2
    said = capfd.readouterr()
    assert said.err.count("\n") == 1, said.err
    assert said.out == ""
    return said.err


def test_without_a_cluster_it_says_what_is_in_the_document(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, DOCUMENT)
    figures = checked(capfd, path)
    assert figures == {
        "file": path,
        "default": "balanced",
        "policies": {
            "balanced": {"description": "as in the settings", "sets": [], "rules": []},
            "stack": {"description": None, "sets": ["filters", "scores.weights"], "rules": [1]},
        },
        "rules": 1,
        "notes": ["filters of stack: kube-scheduler's filters and those of our profiles run all the same"],
    }
    assert run(["policy", "check", path]) == 0
    text = capfd.readouterr().out
    assert figures["notes"][0] in text
    assert "rule 1: namespace shop" in text and "filters, scores.weights" in text and "default balanced" in text


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"policies": {"a": {"scores": {"weights": {"predicted_peek": 1}}}}}, "did you mean predicted_peak?"),
        ({"policies": {}, "default": "nobody"}, "default: there is no policy 'nobody'"),
        ({"polices": {}}, "polices"),
        ("policies: [", "not valid YAML"),
        ("", "the document is empty"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line_that_names_file_and_place(
    document: Any, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, document)
    said = refused(capfd, path)
    assert path in said and message in said


@pytest.mark.parametrize("option", ["--models", "--prometheus", "--at", "--history", "--against"])
def test_options_about_a_cluster_need_one(option: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    value = "2026-01-01" if option == "--at" else "x"
    assert f"{option} needs a cluster" in refused(capfd, written(tmp_path, DOCUMENT), option, value)


def test_it_says_which_pods_are_touched_and_how_their_best_nodes_change(
    evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, DOCUMENT)
    figures = checked(capfd, path, *evening.options())
    found = figures["cluster"]
    assert figures["against"] == "the settings"
    assert found["choices"] == [{"policy": "stack", "because": "rule 1", "pods": 6}]
    assert found["unknown"] == [{"name": "stakc", "pods": 1, "pod": "shop/mail-0"}]
    assert (found["pods"], found["touched_pods"], found["left_out"]) == (6, 6, 0)
    by_pod = {one["pod"]: one for one in found["touched"]}
    assert {name: one["pods"] for name, one in by_pod.items()} == {
        "shop/cart-0": 3,
        "shop/search-0": 2,
        "shop/mail-0": 1,
    }
    # Without cart-0 there are two pods on node-0, where all of them have to be so far, and three on node-1.
    cart, mail = by_pod["shop/cart-0"], by_pod["shop/mail-0"]
    assert (cart["before"]["node"], cart["after"]["node"], cart["moves"]) == ("node-0", "node-1", True)
    assert (cart["before"]["feasible_nodes"], cart["after"]["feasible_nodes"]) == (1, 2)
    assert (cart["runs_on"], mail["runs_on"]) == ("node-0", "node-1")
    assert (mail["before"]["node"], mail["after"]["node"], mail["moves"]) == ("node-0", "node-0", False)
    assert 0 < mail["before"]["peak_share"] == mail["after"]["peak_share"] < 1

    capfd.readouterr()
    assert run(["policy", "check", path, *evening.options()]) == 0
    text = " ".join(capfd.readouterr().out.split())
    assert "6 of 6 pods are touched, of 3 kinds that were looked at: for 3 (1 kinds) another node would be best" in text
    assert "annotation 'stakc' names no policy: 1 pods, for instance shop/mail-0" in text


def test_it_notes_what_counts_in_our_loops_alone_and_why_a_policy_leaves_no_node(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], evening: Evening
) -> None:
    both = {"scores": {"plugin_weights": {"ImageLocality": 0}}, "pools": [{"matchLabels": {"pool": "a"}}]}
    figures = checked(capfd, written(tmp_path, {"policies": {"one": both, "two": both, "three": {"scores": {}}}}))
    assert figures["policies"]["one"]["sets"] == ["pools", "scores.plugin_weights"]
    assert [note.partition(":")[0] for note in figures["notes"]] == ["plugin_weights of one, two", "pools of one, two"]
    cold = {"default": "cold", "policies": {"cold": {"filters": ["PredictedPeak"], "highest_peaks": {"cpu": 0.001}}}}
    path = written(tmp_path, cold)
    found = checked(capfd, path, *evening.options())["cluster"]
    assert {one["after"]["node"] for one in found["touched"]} == {None}
    why = "0/2 nodes are available: 2 placing load of cpu would pass 0.1 % of capacity"
    assert {one["after"]["why_not"] for one in found["touched"]} == {why}
    assert run(["policy", "check", path, *evening.options()]) == 0
    assert f"no node would take shop/cart-0 (3 pods, policy cold): {why}" in " ".join(capfd.readouterr().out.split())


def test_the_policies_in_place_are_those_of_the_settings_unless_it_is_told_otherwise(
    evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, DOCUMENT)
    same = written(tmp_path, {"default": "stack", "policies": {"stack": STACK}}, "in-place.yaml")
    config = written(tmp_path, {"policies": {"file": same}}, "settings.yaml")
    figures = checked(capfd, path, *evening.options(), "--config", config)
    assert (figures["against"], figures["cluster"]["touched_pods"]) == (same, 0)
    assert run(["policy", "check", path, *evening.options(), "--config", config]) == 0
    assert f"compared with {same}" in "".join(capfd.readouterr().out.splitlines())
    # A file that is in place already is not compared with itself.
    figures = checked(capfd, same, *evening.options(), "--config", config)
    assert (figures["against"], figures["cluster"]["touched_pods"]) == ("the settings", 6)
    # The ConfigMap of the settings is that of a server, which a cluster from a file does without.
    config = written(tmp_path, {"policies": {"config_map": "a/b"}}, "settings.yaml")
    assert checked(capfd, path, *evening.options(), "--config", config)["against"] == "the settings"


def test_a_pipe_is_read_to_its_end_and_one_without_a_writer_is_empty(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert "the document is empty" in refused(capfd, str(path))
    # As `policy check <(helm template ...)`: both ends are open before anything is written.
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "w") as file:
            yaml.safe_dump(DOCUMENT, file)

    writer = threading.Timer(0.2, write)
    writer.start()
    try:
        assert checked(capfd, f"/dev/fd/{reading}")["default"] == "balanced"
    finally:
        writer.join()
        os.close(reading)


@pytest.mark.parametrize("where", ["configmap:default/policies", "configmap:policies", "configmap:"])
def test_a_config_map_needs_an_api_server_and_both_names(
    where: str, evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = refused(capfd, written(tmp_path, DOCUMENT), *evening.options(), "--against", where)
    assert where in said
