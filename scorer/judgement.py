"""What the component that places a pod makes of the nodes. The scorer scores; filters, preferences and the sum of all
scores belong to the extender and the scheduling loops, which hand this in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kube.objects.objects import PodInfo

CHOSEN: Final = "chosen"
"""Note of the node that the component would choose."""


@dataclass(frozen=True, slots=True)
class RejectedNodes:
    """Nodes that a filter rejects for one reason, whatever other filters say. preemptible: evicting pods may help."""

    filter: str
    reason: str
    nodes: tuple[str, ...]
    preemptible: bool


@dataclass(frozen=True, slots=True)
class SumPart:
    """What one score adds to the sums, by node. weight: as used; a score of weight 0 is no part."""

    name: str
    weight: float
    points: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Judgement:
    """
    component   : for people: "profile online of schedule, domain forecast-scheduler"
    ranking     : nodes that the pod may go to; the component chooses the first
    totals      : sums of all scores by node of `ranking`, higher is better; parts: what they are made of
    passed_over : nodes that pass the filters and come after all of `ranking`, with what put them there
    n_nodes     : of the cluster
    policy, policy_because : that applies, and what chose it; because: '' = there is no other
    ahead       : pods that were placed first, because their turn comes before
    held        : why the pod gets no node now, though one may fit; '' = nothing holds it
    evicts      : pods that are evicted so that it fits, and makes_room_on: where; '' = nowhere
    runs_on     : node of a pod that is judged as if it waited; '' = it does wait
    not_applied : what the component goes by and this judgement does not
    """

    component: str
    ranking: tuple[str, ...]
    totals: Mapping[str, float]
    parts: tuple[SumPart, ...] = ()
    passed_over: Mapping[str, str] = field(default_factory=dict)
    rejections: tuple[RejectedNodes, ...] = ()
    n_nodes: int = 0
    policy: str = ""
    policy_because: str = ""
    ahead: int = 0
    held: str = ""
    evicts: tuple[str, ...] = ()
    makes_room_on: str = ""
    runs_on: str = ""
    not_applied: tuple[str, ...] = ()

    @property
    def margin(self) -> float | None:
        """By how much the sum of the first node passes that of the second; None = there are no two."""
        if len(self.ranking) < 2:
            return None
        first, second = self.ranking[:2]
        return self.totals[first] - self.totals[second]

    def may_use(self, node: str) -> bool:
        """Whether the pod may go there: no filter rejects the node."""
        return node in self.totals or node in self.passed_over

    def order(self, names: Sequence[str]) -> list[int]:
        """Positions of nodes: those of the ranking, those passed over, then the others, each in the order given."""
        place = {name: at for at, name in enumerate(self.ranking)}
        last = len(place)
        ranks = [place.get(name, last if name in self.passed_over else last + 1) for name in names]
        return sorted(range(len(names)), key=ranks.__getitem__)

    def notes(self, node: str) -> Iterator[str]:
        """What the component says of a node, a sentence each."""
        if self.ranking and node == self.ranking[0] and not self.held:
            yield CHOSEN
        if node == self.runs_on:
            yield "the pod runs here now: it is judged as if it waited"
        if (by := self.passed_over.get(node)) is not None:
            yield f"passed over by {by}"
        for one in self.rejections:
            if node in one.nodes:
                yield f"rejected by {one.filter}: {one.reason}"


Judge = Callable[[PodInfo], Judgement | None]
"""Called under the lock of the tables; None = the pod is of a component that this process does not run."""


def not_judged(pod: PodInfo) -> tuple[str, ...]:
    """What an explanation by the scorer's scores alone leaves out."""
    return (
        f"domain and filters of the component that places pods of schedulerName {pod.scheduler_name}",
        "preferences of its profile, and the scores that it adds to ours",
        "pods that wait before this one",
    )
