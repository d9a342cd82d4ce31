"""Columns of labels: whatever happens in whatever order, they are those of a rebuild."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube.objects.objects import NodeInfo
from placement.index.node_labels import ABSENT, NodeLabels
from testing.placement.views import node_named

KEYS, VALUES = ["zone", "disk", "rank"], ["", "a", "b"]

labels = st.fixed_dictionaries({}, optional={key: st.sampled_from(VALUES) for key in KEYS})
changes = st.tuples(st.integers(0, 3), st.one_of(st.none(), labels))
steps = st.lists(st.one_of(changes, st.sampled_from([*KEYS, "nobody's"])), max_size=30)


def values(table: NodeLabels, key: str, n_rows: int) -> list[str | None]:
    column = table.column(key)
    assert len(column.values) == n_rows
    return [None if number == ABSENT else column.names[number] for number in column.values]


@given(steps=steps)
def test_followed_is_rebuilt(steps: list[tuple[int, dict[str, str] | None] | str]) -> None:
    nodes: list[NodeInfo | None] = [None]
    table = NodeLabels(nodes)
    for step in steps:
        if isinstance(step, str):
            table.column(step)  # the first to ask has it made
            continue
        row, of_node = step
        while len(nodes) <= row:
            nodes.append(None)
            table.node_changed(len(nodes) - 1)
        nodes[row] = None if of_node is None else node_named(f"n{row}", labels=of_node)
        table.node_changed(row)

    for key in (*KEYS, "nobody's"):
        expected = [None if one is None else one.labels.get(key) for one in nodes]
        assert values(table, key, len(nodes)) == expected
        assert values(NodeLabels(nodes), key, len(nodes)) == expected


def test_keys_that_no_node_has_are_not_kept() -> None:
    table = NodeLabels([node_named("n", labels={"zone": "a"})])
    for i in range(1000):
        assert values(table, f"key-{i}", 1) == [None]

    assert not table._columns
    assert values(table, "zone", 1) == ["a"]
