"""Which shapes a day needs besides the first, and what is read through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from base.arrays import Ints
from forecast.resources import RESOURCES
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.node_names import NodeNames, node_names, pod_names
from trainer.prometheus.node_usage_shapes import NODE_SHAPES
from trainer.prometheus.pod_usage_shapes import POD_SHAPES
from trainer.prometheus.pods_of_day import PodsOfDay
from trainer.prometheus.queries import Queries, is_default
from trainer.prometheus.reader import DayReader, Question
from trainer.prometheus.samples import Samples
from trainer.prometheus.shape import Shape, not_read_before

_FEW = 0.001
"""Share of the pods that may be without series of their containers at any moment, since they have just begun."""

_MISSED = 0.01
"""Share of the pods for which it is worth while to look once more."""

_MOST_TICKS = 8

_LEAST_TICKS = 3
"""So many without a sample are more than the beginning of a pod."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """A shape besides the first, the queries that are read through it, and the pods or nodes that it measures alone."""

    shape: Shape
    queries: tuple[str, ...]
    pods: tuple[tuple[str, str], ...] = ()
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        n, what = (len(self.pods), "pod") if self.pods else (len(self.nodes), "node")
        if n > 1:
            return self.shape.says.format(n=f"{n:,} {what}s")
        words = {"{n} are ": "{n} is ", "{n} have ": "{n} has ", "{n} do ": "{n} does ", "{n} use ": "{n} uses "}
        says = reduce(lambda text, verb: text.replace(verb, words[verb]), words, self.shape.says)
        return says.format(n=f"1 {what}")


@dataclass(frozen=True, slots=True)
class ShapeAnswer:
    """What a shape or a collector besides the first says. larger: it counts where it is the larger, too"""

    parts: Sequence[Matrix]
    larger: bool = False


def looked_at(life: Ints, ticks_per_hour: int) -> list[int]:
    """The ticks at which shapes are looked for: both ends and the middle of the day, and more where they miss pods.

    Pods that are there in the afternoon only, on nodes that come with them, may be the only ones of their shape. Each
    is to be seen twice if it is there at two whole hours.

    life : (n_pods, n_ticks) of PodsOfDay
    """
    n_ticks = life.shape[1]
    ticks = {0, n_ticks // 2, n_ticks - 1}
    seen = (life[:, sorted(ticks)] >= 0).sum(axis=1)
    hourly = life[:, ::ticks_per_hour] >= 0  # (n_pods, n_hours)
    wanted = np.minimum(hourly.sum(axis=1), 2)
    while len(ticks) < _MOST_TICKS:
        gained = hourly[seen < wanted].sum(axis=0)
        gained[[tick // ticks_per_hour for tick in ticks if tick % ticks_per_hour == 0]] = 0
        hour = int(gained.argmax())
        if gained[hour] <= _MISSED * len(life):
            break
        ticks.add(hour * ticks_per_hour)
        seen += hourly[:, hour]
    return sorted(ticks)


def all_measured(pods: PodsOfDay, samples: Sequence[Samples]) -> bool:
    """Whether the first shape measures all pods, but for what they lack when they begin: then no other is looked for.

    samples : of CPU and of memory. What rules recorded may be of any shape, so that nothing follows from it.
    """
    if any(part.labels for one in samples for part in one.recorded) or not len(pods.pods):
        return False
    row = {pod: number for number, pod in enumerate(pods.pods)}
    n_ticks = pods.life.shape[-1]
    lacking = np.zeros(len(row), dtype=bool)
    for one in samples:
        there = np.zeros((len(row), n_ticks), dtype=bool)
        for part in one.raw:
            rows = np.array([row.get(name, -1) for name in pod_names(one.name, part.labels)], dtype=np.int64)
            good = (rows[part.series] >= 0) & (part.tick >= 0) & (part.tick < n_ticks)
            there[rows[part.series][good], part.tick[good]] = True
        lacking |= ((pods.life >= 0) & ~there).sum(axis=1) >= min(_LEAST_TICKS, n_ticks)
    return bool(lacking.sum() <= _FEW * len(row))


def pod_shapes(reader: DayReader, queries: Queries, ticks: Collection[int], *, only_beyond: bool) -> list[Recognised]:
    """The shapes that measure pods of which the first knows nothing, at one of the ticks at least.

    only_beyond : look only for those that measure more of pods which the first measures in part
    """
    n_pods = sum(reader.pods.values())
    found = []
    for number, shape in enumerate(POD_SHAPES[1:], start=1):
        names = tuple(name for name in shape.reads if is_default(queries, name))
        if not names or (only_beyond and not shape.beyond):
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
) -> dict[str, list[ShapeAnswer]]:
    """The answers of the shapes by query, those of the shape that is believed first at the front."""
    resources = {resource.name for resource in RESOURCES}
    asked = [
        (one.shape, Question(query, one.shape.reads[query], 0, reader.grid.n_ticks - 1, int(bool(one.pods))))
        for one in recognised
        for query in one.queries
        if query.partition("_")[2] in resources
    ]
    answers: dict[str, list[ShapeAnswer]] = {}
    found = reader.ask([question for _, question in asked], done) if asked else []
    for (shape, question), parts in zip(asked, found, strict=True):
        answers.setdefault(question.name, []).append(ShapeAnswer(parts, shape.beyond or shape.larger))
    return answers
