"""Which shapes a day needs besides the first, and what is read through them."""

from __future__ import annotations

from collections import Counter
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


@dataclass(frozen=True, slots=True)
class Answer:
    """What a shape or a collector besides the first says. larger: it counts where it is the larger, too"""

    parts: Sequence[Matrix]
    larger: bool = False


def pod_shapes(reader: DayReader, queries: Queries, ticks: Collection[int]) -> list[Recognised]:
    """The shapes that measure pods of which the first knows nothing, at one of the ticks at least."""
    n_pods = sum(reader.pods.values())
    found = []
    for number, shape in enumerate(POD_SHAPES[1:], start=1):
        names = tuple(name for name in shape.reads if is_default(queries, name))
        if not names:
            continue
        times: Counter[tuple[str, str]] = Counter()
        for tick in ticks:
            for part in reader.facts(shape.name, not_read_before(POD_SHAPES, number), tick):
                times.update({(labels.get("namespace", ""), labels.get("pod", "")) for labels in part.labels})
        # A container that has just started again looks like one without a name, but not for long.
        pods = sorted(pod for pod, count in times.items() if count >= (2 if shape.beyond else 1))
        if len(pods) > _FEW * n_pods:
            found.append(Recognised(shape, names, pods=tuple(pods)))
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
) -> dict[str, list[Answer]]:
    """The answers of the shapes by query, those of the shape that is believed first at the front."""
    resources = {resource.name for resource in RESOURCES}
    asked = [
        (one.shape, Question(query, one.shape.reads[query], 0, reader.grid.n_ticks - 1, int(bool(one.pods))))
        for one in recognised
        for query in one.queries
        if query.partition("_")[2] in resources
    ]
    answers: dict[str, list[Answer]] = {}
    found = reader.ask([question for _, question in asked], done) if asked else []
    for (shape, question), parts in zip(asked, found, strict=True):
        answers.setdefault(question.name, []).append(Answer(parts, shape.beyond))
    return answers
