"""PodDisruptionBudgets: how many more pods of each may be disrupted now.

    watch --> DisruptionBudgets --> which budgets a pod is in; allowed disruptions by budget

Source: filterPodsWithPDBViolation of plugins/defaultpreemption/default_preemption.go. The API server does not hold a
deletion against budgets, only an eviction: preemption minds them as far as it can, as kube-scheduler does.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Final

import msgspec
from msgspec import Raw

from kube.decoding import wire
from kube.decoding.constraint_decoding import label_selector
from kube.decoding.watched_kinds import Watched
from kube.decoding.wire_base import Text, Wire
from kube.decoding.wire_scheduling import LabelSelectorJson
from kube.objects.constraints import LabelSelector
from kube.objects.labels import selector_matches
from kube.objects.objects import PodInfo

_REMEMBERED: Final = 16384
"""Sets of labels whose budgets are remembered; when there are more, all are looked up anew."""

_Labels = tuple[str, frozenset[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """What matters of a PodDisruptionBudget.

    selector  : None or without requirements = no pod
    allowed   : status.disruptionsAllowed
    disrupted : names of pods whose eviction is under way already: they are reckoned with in `allowed`
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    allowed: int = 0
    disrupted: frozenset[str] = field(default_factory=frozenset)

    def means(self, pod: PodInfo) -> bool:
        """Whether the pod is in it. A pod without labels is in none."""
        return (
            bool(pod.labels)
            and pod.namespace == self.namespace
            and self.selector is not None
            and bool(self.selector.requirements)
            and selector_matches(self.selector, pod.labels)
        )


class BudgetSpec(Wire):
    """spec of a PodDisruptionBudget."""

    selector: LabelSelectorJson | None = None


class BudgetStatus(Wire):
    """status of a PodDisruptionBudget."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[Text, Raw] | None = None


class BudgetJson(Wire):
    """A PodDisruptionBudget (policy/v1)."""

    metadata: wire.Metadata
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


_DECODER: Final = msgspec.json.Decoder(BudgetJson)


def _decode(body: bytes | Raw) -> tuple[DisruptionBudget, str]:
    whole = _DECODER.decode(body)
    spec, status = whole.spec or BudgetSpec(), whole.status or BudgetStatus()
    budget = DisruptionBudget(
        namespace=whole.metadata.namespace or "default",
        name=whole.metadata.name,
        selector=label_selector(spec.selector),
        allowed=max(-(2**31), min(status.disruptions_allowed, 2**31 - 1)),
        disrupted=frozenset(status.disrupted_pods or ()),
    )
    return budget, whole.metadata.resource_version or ""


WATCHED_BUDGETS: Final[Watched[DisruptionBudget]] = Watched(
    "poddisruptionbudgets", "PodDisruptionBudget", "/apis/policy/v1/poddisruptionbudgets", _decode
)
"""Needs get, list and watch on poddisruptionbudgets.policy."""


class DisruptionBudgets:
    """Implements ResourceSink. For any thread.

    selected : a number that is another one whenever a pod may have come into another budget than before
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._number: dict[tuple[str, str], int] = {}
        self._budgets: list[DisruptionBudget | None] = []
        self._free: list[int] = []
        self._of_namespace: dict[str, dict[int, DisruptionBudget]] = {}
        self._remembered: dict[_Labels, tuple[int, ...]] = {}
        self._taken: Counter[int] = Counter()  # disruptions that no status shows yet
        self.selected = 0

    def replace(self, objects: Sequence[DisruptionBudget]) -> None:
        with self._lock:
            names = {(one.namespace, one.name) for one in objects}
            for gone in [key for key in self._number if key not in names]:
                self._drop(gone)
            for one in objects:
                self.put(one)

    def put(self, obj: DisruptionBudget) -> None:
        """One is new or has changed."""
        with self._lock:
            key = (obj.namespace, obj.name)
            number = self._number.get(key)
            if number is None:
                number = self._free.pop() if self._free else len(self._budgets)
                if number == len(self._budgets):
                    self._budgets.append(None)
                self._number[key] = number
            before = self._budgets[number]
            self._budgets[number] = obj
            self._of_namespace.setdefault(obj.namespace, {})[number] = obj
            if before is None or before.selector != obj.selector:
                self._selects_others()

    def delete(self, obj: DisruptionBudget) -> None:
        with self._lock:
            self._drop((obj.namespace, obj.name))

    def __len__(self) -> int:
        return len(self._number)

    def numbers_of(self, pod: PodInfo) -> tuple[int, ...]:
        """Numbers of the budgets that a pod is in, whether its eviction is under way or not."""
        key = (pod.namespace, frozenset(pod.labels.items()))
        with self._lock:
            found = self._remembered.get(key)
            if found is None:
                if len(self._remembered) >= _REMEMBERED:
                    self._remembered.clear()
                in_namespace = self._of_namespace.get(pod.namespace, {})
                found = tuple(number for number, one in in_namespace.items() if one.means(pod))
                self._remembered[key] = found
            return found

    def allowed(self) -> list[int]:
        """Disruptions allowed now, by number of the budget."""
        with self._lock:
            return [0 if one is None else one.allowed - self._taken[n] for n, one in enumerate(self._budgets)]

    def after(self, gone: Iterable[PodInfo]) -> DisruptionBudgets:
        """The same budgets once these pods are disrupted, to be read and thrown away."""
        after = copy(self)
        with self._lock:
            after._taken = self._taken + Counter(number for pod in gone for number in self._counting(pod))
        return after

    def disrupted(self) -> list[tuple[int, str, str]]:
        """Pods whose eviction is under way: number of the budget, namespace and name of the pod."""
        with self._lock:
            return [
                (number, one.namespace, name)
                for number, one in enumerate(self._budgets)
                if one is not None
                for name in one.disrupted
            ]

    def violated_by(self, pods: Iterable[PodInfo], also_gone: Iterable[PodInfo] = ()) -> list[bool]:
        """Whether the disruption of each pod violates a budget once those before it are disrupted.

        also_gone : are disrupted before the first of them
        """
        with self._lock:
            left = dict(enumerate(self.allowed()))
            for pod in also_gone:
                self._disrupt(pod, left)
            return [self._disrupt(pod, left) for pod in pods]

    def allowed_for(self, pod: PodInfo) -> int | None:
        """Return how many pods of the pod's budgets may be disrupted now; None = it is in none."""
        with self._lock:
            allowed = self.allowed()
            return min((allowed[number] for number in self._counting(pod)), default=None)

    def status(self) -> Mapping[str, int]:
        """Allowed disruptions by namespace/name."""
        with self._lock:
            return {f"{one.namespace}/{one.name}": one.allowed for one in self._budgets if one is not None}

    def _disrupt(self, pod: PodInfo, left: dict[int, int]) -> bool:
        is_violated = False
        for number in self._counting(pod):
            left[number] -= 1
            is_violated = is_violated or left[number] < 0
        return is_violated

    def _counting(self, pod: PodInfo) -> Iterator[int]:
        """Numbers of the budgets that do not reckon with the pod's eviction yet."""
        for number in self.numbers_of(pod):
            budget = self._budgets[number]
            if budget is not None and pod.name not in budget.disrupted:
                yield number

    def _drop(self, key: tuple[str, str]) -> None:
        number = self._number.pop(key, None)
        if number is None:
            return
        self._budgets[number] = None
        self._free.append(number)
        in_namespace = self._of_namespace[key[0]]
        del in_namespace[number]
        if not in_namespace:
            del self._of_namespace[key[0]]
        self._selects_others()

    def _selects_others(self) -> None:
        self._remembered.clear()
        self.selected += 1
