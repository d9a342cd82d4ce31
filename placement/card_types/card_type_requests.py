"""Which types of cards a pod names: those it must have, and those it would rather have.

    forecast-scheduler.io/gpu-type: "A100,H100"              one of these, or nothing
    forecast-scheduler.io/gpu-type-preferred: "H100,A100"    the first that is to be had, or any other
    nodeSelector, required node affinity on a model label    as the first, for NodeAffinity to see to

Names match as card_names.py says; values of labels as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.constraints import NodeSelectorTerm, Operator, PodConstraints
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from placement.card_names import of_any_type
from placement.filters.pod_annotations import GPU_TYPE, names_in

GPU_TYPE_PREFERRED: Final = ANNOTATION_PREFIX + "gpu-type-preferred"


@dataclass(frozen=True, slots=True)
class CardTypeRequest:
    """
    required  : names of types; none = any
    labelled  : values of model labels that selectors leave; None = any
    preferred : names of types, the dearest first
    """

    required: tuple[str, ...] = ()
    labelled: frozenset[str] | None = None
    preferred: tuple[str, ...] = ()

    @property
    def is_choosy(self) -> bool:
        """Whether there are types that it cannot do with."""
        return bool(self.required) or self.labelled is not None


NO_WISH: Final = CardTypeRequest()


def wish_of(pod: PodInfo, model_labels: Sequence[str]) -> CardTypeRequest:
    """model_labels: labels of nodes that say a model."""
    said, constraints = pod.annotations, pod.constraints
    is_labelled = bool(constraints.node_selector) or constraints.required_node_terms is not None
    if not is_labelled and GPU_TYPE not in said and GPU_TYPE_PREFERRED not in said:
        return NO_WISH
    labelled = _labelled(constraints, model_labels) if is_labelled else None
    return CardTypeRequest(names_in(pod, GPU_TYPE), labelled, names_in(pod, GPU_TYPE_PREFERRED))


@lru_cache(maxsize=4096)
def accepted(wish: CardTypeRequest, models: tuple[str, ...]) -> Bools:
    """(n_models,) models that the pod can do with; read-only."""
    fits = np.ones(len(models), dtype=bool)
    if wish.required:
        fits &= _matching(wish.required, models)
    if wish.labelled is not None:
        fits &= np.fromiter((model in wish.labelled for model in models), dtype=bool, count=len(models))
    fits.flags.writeable = False
    return fits


@lru_cache(maxsize=4096)
def ranks(wish: CardTypeRequest, models: tuple[str, ...]) -> Ints:
    """(n_models,) position of the first preferred name that means the model; as many as there are names = none does.

    Read-only.
    """
    rank = np.full(len(models), len(wish.preferred), dtype=np.int64)
    for position in range(len(wish.preferred) - 1, -1, -1):
        rank[_matching(wish.preferred[position : position + 1], models)] = position
    rank.flags.writeable = False
    return rank


def _matching(names: Iterable[str], models: Sequence[str]) -> Bools:
    is_meant = of_any_type(names)
    return np.fromiter(map(is_meant, models), dtype=bool, count=len(models))


def _labelled(constraints: PodConstraints, model_labels: Sequence[str]) -> frozenset[str] | None:
    """Values that are left by the selector and by whichever of the terms is met; None = some way leaves all."""
    left: frozenset[str] | None = None
    for key, value in constraints.node_selector:
        if key in model_labels:
            left = _both(left, frozenset((value,)))
    if constraints.required_node_terms is None:
        return left
    of_terms: frozenset[str] = frozenset()
    for term in constraints.required_node_terms:
        of_term = _of_term(term, model_labels)
        if of_term is None:
            return left
        of_terms |= of_term
    return _both(left, of_terms)


def _of_term(term: NodeSelectorTerm, model_labels: Sequence[str]) -> frozenset[str] | None:
    left: frozenset[str] | None = None
    for one in term.expressions:
        if one.key in model_labels and one.operator is Operator.IN:
            left = _both(left, frozenset(one.values))
    return left


def _both(left: frozenset[str] | None, right: frozenset[str]) -> frozenset[str]:
    return right if left is None else left & right
