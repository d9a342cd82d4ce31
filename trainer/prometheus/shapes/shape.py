"""What a shape is, and which of them a day needs. Pure.

A *shape* is one way in which agents expose the usage of pods or of nodes. Shapes stand in the order in which they are
believed: what the first one measures is not asked of the second. The first is that of kube-prometheus, which is always
read; another is read only on days on which it measures something that no shape before it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """One entry.

    name  : as the user reads it
    says  : what was found and how it is read, with the place {n} for "12 pods" or "3 nodes"
    there : PromQL, a vector by (namespace, pod) or by (node) of what this shape can measure at an instant
    reads : query of the settings -> template in the manner of trainer.prometheus.queries
    beyond: it measures more of pods that a shape before it measures in part: the larger of the two counts
    larger: what rules of an older release recorded may be a part of it: the larger of the two counts
    alone : it may name nodes in another way than the shapes before it, so that a server cannot tell which it measures
            alone: in a union it counts only where the first shape says nothing at all
    """

    name: str
    says: str
    there: str
    reads: Mapping[str, str]
    beyond: bool = False
    larger: bool = False
    alone: bool = False


def not_read_before(shapes: Sequence[Shape], number: int) -> str:
    """PromQL of the pods that shape `number` measures and none before it, or measures more of."""
    if shapes[number].beyond:
        return shapes[number].there
    before = " or ".join(f"({shape.there})" for shape in shapes[:number] if not shape.beyond)
    return f"({shapes[number].there}) unless ({before})"


def union(shapes: Sequence[Shape], query: str) -> str:
    """One template of all shapes for who cannot look first: rules that a server evaluates, and what is used right now.

    A series of a later shape counts where no earlier one has the same pod or node; "" if no shape reads the query.
    """
    reading = [shape for shape in shapes if query in shape.reads and not shape.beyond]
    if len(reading) == 1:
        return reading[0].reads[query]
    unless = f" unless on () ({shapes[0].there})"
    return " or ".join(f"({shape.reads[query]}){unless if shape.alone else ''}" for shape in reading)
