"""What a name of a metric means: a node by its address, by what exporters tell, without its domain, and for a time."""

from __future__ import annotations

import numpy as np

from forecast.resources import NETWORK
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.node_names import NameSpan, NodeNames, always, names_of_nodes, node_facts

NODES = ("node-1", "node-2", "ip-10-0-0-3.ec2.internal")


def answer(*nodes: str, ticks: int = 4) -> Matrix:
    """Each node has its number as its value at every tick."""
    series = np.repeat(np.arange(len(nodes)), ticks)
    labels = tuple({"node": node} for node in nodes)
    return Matrix(labels, series, np.tile(np.arange(ticks), len(nodes)), series.astype(float))


def table(names: NodeNames, part: Matrix) -> dict[str, dict[int, float]]:
    [renamed] = names.renamed("node_cpu", [part])
    found: dict[str, dict[int, float]] = {}
    for series, tick, value in zip(renamed.series, renamed.tick, renamed.values, strict=True):
        found.setdefault(renamed.labels[series]["node"], {})[int(tick)] = float(value)
    return found


def test_each_way_of_naming_a_node() -> None:
    seen = ("10.0.0.1", "10.0.0.3", "node-2.example.org", "172.16.0.9", "database-7", "node-1", "10.0.0.1:9100")
    names = names_of_nodes(NODES, {"10.0.0.1": always("node-1")}, {"172.16.0.9": "node-2"}, seen)
    assert {name: names.node(name) for name in seen} == {
        "10.0.0.1": "node-1",
        "10.0.0.3": "ip-10-0-0-3.ec2.internal",
        "node-2.example.org": "node-2",
        "172.16.0.9": "node-2",
        "database-7": "database-7",
        "node-1": "node-1",
        "10.0.0.1:9100": "node-1",
    }
    assert names.strangers(seen) == ("database-7",)


def test_an_address_changes_hands_within_a_day() -> None:
    spans = {"10.0.0.1": (NameSpan("node-1", 0, 1), NameSpan("node-2", 3, 3))}
    names = names_of_nodes(NODES, spans, {}, ["10.0.0.1"])
    assert table(names, answer("10.0.0.1")) == {"node-1": {0: 0.0, 1: 0.0}, "node-2": {3: 0.0}}
    assert names.nodes("10.0.0.1") == {"node-1", "node-2"} and names.nodes("node-1") == {"node-1"}


def test_a_fact_of_an_address_that_changed_hands_is_one_of_both_nodes() -> None:
    spans = {"10.0.0.1": (NameSpan("node-1", 0, 1), NameSpan("node-2", 2, 3))}
    names = names_of_nodes(NODES, spans, {}, ["10.0.0.1"])
    speed = Matrix(({"node": "10.0.0.1"},), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.array([1e9]))
    capacity = node_facts([], [], []).capacity(NODES, [speed], names)
    assert capacity[:, NETWORK].tolist()[:2] == [1e9, 1e9] and np.isnan(capacity[2, NETWORK])


def test_a_node_may_have_two_addresses_on_one_day_and_a_stranger_is_left_out() -> None:
    addresses = {"10.0.0.1": always("node-1"), "10.0.0.7": always("node-1")}
    names = names_of_nodes(NODES, addresses, {}, ["10.0.0.1", "10.0.0.7", "database-7"])
    [renamed] = names.renamed("node_cpu", [answer("10.0.0.1", "database-7", "10.0.0.7")])
    assert [labels["node"] for labels in renamed.labels] == ["node-1", "node-1"]
    assert set(renamed.values.tolist()) == {0.0, 2.0}


def test_where_nobody_lists_nodes_every_name_is_one() -> None:
    names = names_of_nodes((), {}, {}, ["10.0.0.1"])
    assert table(names, answer("10.0.0.1", ticks=1)) == {"10.0.0.1": {0: 0.0}} and names.strangers(["x"]) == ()
