"""Both sides of one cluster, and where they differ."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from tests.differential.our_filters import OurVerdict, Tables, decoded
from tests.differential.real_scheduler import Observed, RealVerdict


@dataclass(frozen=True, slots=True)
class Compared:
    """One probe: `real` and `ours` must pass the same nodes."""

    probe: str
    real: RealVerdict
    ours: OurVerdict
    spec: Mapping[str, Any]
    n_nodes: int

    @property
    def differs(self) -> bool:
        """Whether a node passes on one side only."""
        return self.real.passing != self.ours.passing

    @property
    def words_differ(self) -> bool:
        """Whether no node passes and kube-scheduler gives other reasons than ours."""
        if self.real.passing or self.ours.passing or self.real.reason != "Unschedulable":
            return False
        counted = words_of(self.real)
        if counted is not None:
            return counted != our_words(self.ours)
        if "didn't satisfy plugin(s)" in self.real.message:
            return False
        # A PreFilter plugin speaks before all Filter plugins, for all nodes.
        every = [{reason for _, reason in why} for why in self.ours.reasons.values()]
        return not any(f": {reason}." in self.real.message for reason in set.intersection(*every))

    def __str__(self) -> str:
        ours, real = self.ours, self.real
        lines = (
            f"{self.probe}: kube-scheduler says {real.reason}: {real.message}",
            *(f"  {name} passes there; ours: {ours.reasons[name]}" for name in sorted(real.passing - ours.passing)),
            *(f"  {name} passes with ours only" for name in sorted(ours.passing - real.passing)),
            *([f"  ours in words: {dict(our_words(ours))}"] if self.words_differ else ()),
            f"  {json.dumps(self.spec)}",
        )
        return "\n".join(lines)


def compare(observed: Observed, followed: Iterable[Tables], rng: Random) -> list[Compared]:
    """All probes of a cluster.

    followed : tables that have followed other clusters before; they must agree with new ones
    """
    objects = decoded(observed.objects)
    pods = {one.name: one for one in objects[Kind.PODS] if isinstance(one, PodInfo)}
    specs = {one["metadata"]["name"]: one for one in observed.objects[Kind.PODS]}
    new = Tables()
    new.put_in_any_order(objects, rng)
    for tables in followed:
        tables.replace(objects)
    found = []
    for name, real in observed.verdicts.items():
        ours = new.verdict(pods[name])
        for tables in followed:
            again = tables.verdict(pods[name])
            assert again.passing == ours.passing, f"{name}: what came before makes a difference: {again} {ours}"
        wanted = {key: specs[name][key] for key in ("metadata", "spec")}
        wanted["metadata"] = {key: wanted["metadata"].get(key) for key in ("namespace", "labels")}
        found.append(Compared(name, real, ours, wanted, len(objects[Kind.NODES])))
    return found


def words_of(verdict: RealVerdict) -> Counter[str] | None:
    """Reasons in the message of FitError (pkg/scheduler/framework/types.go), by how many nodes they hold for.

    None = it says nothing of single nodes: a PreFilter plugin turned the pod down, or left only some nodes over.
    """
    text = _MESSAGE.fullmatch(verdict.message)
    if text is None or "didn't satisfy plugin(s)" in verdict.message:
        return None
    found = [_COUNTED.fullmatch(reason) for reason in _BETWEEN.split(text["reasons"])]
    if not all(found):
        return None
    counted: Counter[str] = Counter()
    for one in filter(None, found):
        counted[_without_driver(one["reason"])] += int(one["count"])
    return counted


def our_words(verdict: OurVerdict) -> Counter[str]:
    """The same of ours: of each node the reasons of the first filter that rejects it."""
    return Counter(
        reason
        for why in verdict.reasons.values()
        for reason in {_without_driver(reason) for name, reason in why if name == why[0][0]}
    )


def _without_driver(reason: str) -> str:
    """Of several drivers that a node lacks kube-scheduler names any one: they are in a map of Go."""
    return _LACKING.sub("CSI driver", reason)


_MESSAGE: Final = re.compile(
    r"0/\d+ nodes are available: (?P<reasons>.*?)\.( no new claims to deallocate,)?( preemption: .*)?", re.DOTALL
)
_LACKING: Final = re.compile(r"^\S+ CSI driver(?= is not installed)")
_BETWEEN: Final = re.compile(r", (?=\d+ )")
_COUNTED: Final = re.compile(r"(?P<count>\d+) (?P<reason>.+)", re.DOTALL)
