"""Random labels of pods and namespaces, and selectors that match some of them: from small pools, so that they meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

NAMESPACES: Final = ("default", "shop", "batch", "bare")

POD_LABELS: Final[Mapping[str, Sequence[str]]] = {
    "app": ("cart", "web", "db"),
    "tier": ("front", "back", ""),
    "version": ("v1", "v2"),
}
"""`version` is for matchLabelKeys: selectors do not mention it, the API server would refuse both."""

_NAMESPACE_LABELS: Final = {"team": ("red", "blue"), "stage": ("prod", "test")}
_SELECTED: Final = {key: POD_LABELS[key] for key in ("app", "tier")}


def often(rng: Random, share: float) -> bool:
    """True in that share of the calls."""
    return rng.random() < share


def some_of(rng: Random, items: Sequence[Any], least: int = 1, most: int = 2) -> list[Any]:
    """A few of them, in any order."""
    return rng.sample(list(items), min(len(items), rng.randint(least, most)))


def random_labels(rng: Random, pools: Mapping[str, Sequence[str]] = POD_LABELS) -> dict[str, str]:
    """Each key with a likelihood of 4 in 5."""
    return {key: rng.choice(values) for key, values in pools.items() if often(rng, 0.8)}


def random_namespaces(rng: Random) -> dict[str, dict[str, str]]:
    """Labels by namespace; `bare` has none of ours."""
    return {name: {} if name == "bare" else random_labels(rng, _NAMESPACE_LABELS) for name in NAMESPACES}


def random_requirement(rng: Random, pools: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """One entry of matchExpressions, mostly one that something can match."""
    key = rng.choice([*pools, "nobody-has-it"] if often(rng, 0.1) else list(pools))
    operator = rng.choice(("In", "In", "In", "NotIn", "Exists", "DoesNotExist"))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": some_of(rng, pools.get(key, ("x",)))}


def random_label_selector(rng: Random, pools: Mapping[str, Sequence[str]] = _SELECTED) -> dict[str, Any] | None:
    """A selector of pods (or namespaces); rarely an empty one, which means all, or none, which means nothing."""
    what = rng.random()
    if what < 0.04:
        return None
    if what < 0.1:
        return {}
    if what < 0.6:
        key = rng.choice(list(pools))
        return {"matchLabels": {key: rng.choice(pools[key])}}
    selector: dict[str, Any] = {"matchExpressions": [random_requirement(rng, pools) for _ in range(rng.randint(1, 2))]}
    if often(rng, 0.2):
        selector["matchLabels"] = random_labels(rng, pools)
    return selector


def random_namespace_selector(rng: Random) -> dict[str, Any]:
    """A selector of namespaces; an empty one means all."""
    if often(rng, 0.3):
        return {}
    return random_label_selector(rng, _NAMESPACE_LABELS) or {}
