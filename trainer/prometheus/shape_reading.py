"""Which shapes a day needs besides the first, and what is read through them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from forecast.resources import RESOURCES
from trainer.prometheus.labels import node_names
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.node_names import NodeNames
from trainer.prometheus.queries import Queries, is_default
from trainer.prometheus.reader import DayReader, Question
from trainer.prometheus.shapes.nodes import NODE_SHAPES
from trainer.prometheus.shapes.pods import POD_SHAPES
from trainer.prometheus.shapes.shape import Shape, not_read_before

_FEW = 0.001
"""Share of the pods that may be without series of their containers at any moment, since they have just begun."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """A shape besides the first, the queries that are read through it, and the pods or nodes that it measures alone."""

    shape: Shape
    queries: tuple[str, ...]
    pods: tuple[tuple[str, str], ...] = ()
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        n, what = (len(self.pods), "pod") if self.pods else (len(self.nodes), "node")
        return self.shape.says.format(n=f"{n:,} {what}{'' if n == 1 else 's'}")


def pod_shapes(reader: DayReader, queries: Queries, ticks: Collection[int]) -> list[Recognised]:
    """The shapes that measure pods of which the first knows nothing, at one of the ticks at least."""
    n_pods = sum(reader.pods.values())
    found = []
    for number, shape in enumerate(POD_SHAPES[1:], start=1):
        names = tuple(name for name in shape.reads if is_default(queries, name))
        if not names:
            continue
        pods: set[tuple[str, str]] = set()
        for tick in ticks:
            for part in reader.facts(shape.name, not_read_before(POD_SHAPES, number), tick):
                pods.update((labels.get("namespace", ""), labels.get("pod", "")) for labels in part.labels)
        if len(pods) > _FEW * n_pods:
            found.append(Recognised(shape, names, pods=tuple(sorted(pods))))
    return found


@dataclass(frozen=True, slots=True)
class NodesSeen:
    """names: of the nodes that each of NODE_SHAPES measures, as the metrics have them"""

    names: Mapping[str, frozenset[str]]

    @property
    def all(self) -> frozenset[str]:
        return frozenset().union(*self.names.values())

    def shapes(self, names: NodeNames, queries: Queries, nodes: Collection[str]) -> list[Recognised]:
        """The shapes besides the first that measure something of nodes that no shape before them measures.

        nodes : all there are
        """
        covered: dict[str, set[str]] = {query: set() for shape in NODE_SHAPES for query in shape.reads}
        found = []
        for number, shape in enumerate(NODE_SHAPES):
            here = {names.node(name) for name in self.names[shape.name]} & set(nodes)
            alone = {query: here - covered[query] for query in shape.reads}
            wanted = tuple(q for q, new in alone.items() if new and is_default(queries, q))
            if number and wanted:
                found.append(Recognised(shape, wanted, nodes=tuple(sorted(set().union(*(alone[q] for q in wanted))))))
            for query in shape.reads:
                covered[query] |= here
        return found


def nodes_seen(reader: DayReader, ticks: Collection[int]) -> NodesSeen:
    """Which nodes each shape measures at one of the ticks at least."""
    return NodesSeen(
        {
            shape.name: frozenset(
                name
                for tick in ticks
                for part in reader.facts(shape.name, shape.there, tick)
                for name in node_names(shape.name, part.labels, once=False)
            )
            for shape in NODE_SHAPES
        }
    )


def read_shapes(
    reader: DayReader, recognised: Sequence[Recognised], done: Callable[[int, int], None]
) -> dict[str, list[Sequence[Matrix]]]:
    """The answers of the shapes by query, those of the shape that is believed first at the front."""
    resources = {resource.name for resource in RESOURCES}
    questions = [
        Question(query, one.shape.reads[query], 0, reader.grid.n_ticks - 1, int(bool(one.pods)))
        for one in recognised
        for query in one.queries
        if query.partition("_")[2] in resources
    ]
    answers: dict[str, list[Sequence[Matrix]]] = {}
    for question, parts in zip(questions, reader.ask(questions, done) if questions else [], strict=True):
        answers.setdefault(question.name, []).append(parts)
    return answers
