"""Random nodes and mixes of pods, and fragmentation computed the slow way, pod shape by pod shape and card by card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from profiles.gpu.fragmentation.idle_of_nodes import NodeStates
from profiles.gpu.fragmentation.pod_shapes import PodShape, ShapeMix

MODELS = ("P100", "T4", "A10")

Row = tuple[float, float, int, list[int]]
"""CPU milli and MiB free, index of the model, milli free of each card."""


def node_states(rows: Sequence[Row]) -> NodeStates:
    """As they are, with more cores and memory in all."""
    most = max((len(cards) for *_, cards in rows), default=0)
    free = np.array([[*cards, *[-1] * (most - len(cards))] for *_, cards in rows], dtype=np.int64)
    cpu = np.array([row[0] for row in rows], dtype=np.float64)
    memory = np.array([row[1] for row in rows], dtype=np.float64)
    model = np.array([row[2] for row in rows], dtype=np.int64)
    n_devices = np.array([len(row[3]) for row in rows], dtype=np.int64)
    return NodeStates(cpu, memory, free.reshape(len(rows), most), model, cpu + 64_000, memory + 256_000, n_devices)


def slow_fits(shape: PodShape, cpu: float, memory: float, model: int, cards: Sequence[int]) -> bool:
    enough = sum(free >= shape.milli for free in cards) >= shape.count
    return (
        cpu >= shape.cpu_milli and memory >= shape.memory_mib and (not shape.count or (takes(shape, model) and enough))
    )


def takes(shape: PodShape, model: int) -> bool:
    return not shape.models or (model >= 0 and MODELS[model] in shape.models)


def slow_pods(shape: PodShape, cpu: float, memory: float, model: int, cards: Sequence[int]) -> float:
    """That fit, in fractions where cores or memory are what ends it; the model does not matter."""
    if not slow_fits(replace(shape, models=frozenset()), cpu, memory, model, cards):
        return 0.0
    by_cards = sum(free // shape.milli for free in cards) // shape.count
    by_cores = cpu / shape.cpu_milli if shape.cpu_milli else np.inf
    return min(by_cards, by_cores, memory / shape.memory_mib if shape.memory_mib else np.inf)


def with_part(cards: Sequence[int], card: int, milli: int) -> list[int]:
    return [*cards[:card], cards[card] - milli, *cards[card + 1 :]]


def with_whole(cards: Sequence[int], count: int) -> list[int]:
    """Without the first so many that are wholly free."""
    left = list(cards)
    for card in [card for card, free in enumerate(cards) if free == 1000][:count]:
        left[card] = 0
    return left


def with_pod(row: Row, shape: PodShape, cards: list[int]) -> Row:
    return row[0] - shape.cpu_milli, row[1] - shape.memory_mib, row[2], cards


def slow_fragmentation(mix: ShapeMix, cpu: float, memory: float, model: int, cards: Sequence[int]) -> float:
    """As the paper has it: what each shape cannot use, weighted."""
    fragmented = 0.0
    for shape, weight in zip(mix.shapes, mix.weight, strict=True):
        if not shape.count or not slow_fits(shape, cpu, memory, model, cards):
            fragmented += weight * sum(cards)
        else:
            fragmented += weight * sum(free for free in cards if free < shape.milli)
    return fragmented


cpus = st.integers(0, 8).map(lambda cores: cores * 1000)
memories = st.integers(0, 8).map(lambda gib: gib * 1024)
frees = st.sampled_from([0, 100, 250, 500, 700, 900, 1000, 1000])
rows = st.tuples(cpus, memories, st.integers(-1, len(MODELS) - 1), st.lists(frees, max_size=4))
nodes = st.lists(rows, min_size=1, max_size=6)
cards_asked = st.one_of(
    st.just((0, 0)), st.sampled_from([(1, 100), (1, 250), (1, 500), (1, 900)]), st.sampled_from([(1, 1000), (2, 1000)])
)
shapes = st.builds(
    lambda cpu, memory, cards, models: PodShape(cpu, memory, cards[0], cards[1], models if cards[0] else frozenset()),
    cpus,
    memories,
    cards_asked,
    st.frozensets(st.sampled_from(MODELS), max_size=2),
)
mixes = st.lists(st.tuples(shapes, st.integers(1, 9)), min_size=1, max_size=6, unique_by=lambda pair: pair[0]).map(
    lambda pairs: ShapeMix(
        tuple(shape for shape, _ in pairs),
        np.array([amount for _, amount in pairs], dtype=np.float64) / sum(amount for _, amount in pairs),
    )
)
