"""What a plan is made from, in columns: nodes, the pods on them, where each may go, and what may be spent."""

from __future__ import annotations

from dataclasses import dataclass

from base.arrays import AnyFloats, Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class PlannedPods:
    """Pods that sit on nodes.

    node     : (n_pods,) row of the node
    profile  : (n_pods,) row of Problem.usage
    requests : (n_pods, n_requests) in the order of Problem.free
    service, namespace : (n_pods,) rows of the budgets
    shape    : (n_pods,) row of Problem.allowed
    cost     : (n_pods,) what a move costs, in node half hours of heat; infinite = the pod may not be moved
    """

    node: Ints
    profile: Ints
    requests: Floats
    service: Ints
    namespace: Ints
    shape: Ints
    cost: Floats

    def __len__(self) -> int:
        return len(self.node)


@dataclass(frozen=True, slots=True)
class Budget:
    """How many pods may be moved.

    total         : of all
    per_service   : (n_services,)
    per_namespace : (n_namespaces,)
    per_node      : away from one node, and to one node
    """

    total: int
    per_service: Ints
    per_namespace: Ints
    per_node: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Where pods sit and what the horizon will bring. A slot is a half hour.

    load     : (n_nodes, n_resources, n_slots) expected usage of each node with all of its pods, base units
    margin   : (n_nodes, n_resources, n_slots) upper bound of the same less `load`, >= 0
    capacity : (n_nodes, n_resources) base units; NaN = not a limit
    free     : (n_nodes, n_requests) allocatable less requested; infinite = not known
    usage    : (n_profiles, n_resources, n_slots) expected usage of one pod
    allowed  : (n_shapes, n_nodes) nodes that a pod of the shape may go to, by all rules that no other move changes
    hot      : share of its capacity above which a node is hot
    """

    load: AnyFloats
    margin: AnyFloats
    capacity: Floats
    free: Floats
    usage: AnyFloats
    pods: PlannedPods
    allowed: Bools
    budget: Budget
    hot: float

    @property
    def n_nodes(self) -> int:
        return len(self.capacity)


@dataclass(frozen=True, slots=True)
class MoveReason:
    """Why a pod leaves its node: where that helps most, and what its target is at most expected at. Shares of capacity.

    source_share, source_bound : expected load and upper bound of the source in this slot before the move
    target_share : highest expected load of the target in any slot after it
    """

    resource: str
    slot: int
    source_share: float
    source_bound: float
    target_share: float

    def sentence(self, source: str, target: str) -> str:
        """Return the reason of the move: by expected loads of half hours, which are numbers."""
        return (
            f"{source} is expected at {self.source_share:.0%} of {self.resource} in slot {self.slot} "
            f"(upper bound {self.source_bound:.0%}), {target} reaches {self.target_share:.0%} at most"
        )


@dataclass(frozen=True, slots=True)
class Move:
    """One pod from node to node. Rows are those of the problem.

    gain : node half hours of heat that the move prevents at its turn; each of n partners has 1/n of what they prevent
           together
    reason : for people, with rows for names; `relief` has what it says as data
    partner : position in the plan of the move without which this one is worth nothing; None = it stands alone. Partners
              follow each other; where several pods make room for one, each names that one, and it names one of them
    relief : None if the move only makes room for its partner
    """

    pod: int
    source: int
    target: int
    gain: float
    reason: str
    partner: int | None = None
    relief: MoveReason | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Moves, in the order in which they can be made.

    hot_before, hot_after : node half hours over the hot share of capacity, by the expected load
    at_risk_before, at_risk_after : the same by its upper bound
    heat_before, heat_after : what the plan brings down (rebalancer.planning.heat)
    most_gain : no plan within this budget brings the heat down by more
    """

    moves: tuple[Move, ...]
    hot_before: int
    hot_after: int
    at_risk_before: int
    at_risk_after: int
    heat_before: float
    heat_after: float
    most_gain: float
