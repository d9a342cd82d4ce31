"""What the scores read: the nodes being scored, the pod and the cluster, in columns.

Axes: n_kinds = Kubernetes resources by which pods request (CPU and memory first), n_resources = forecast.resources,
3 = QoS classes (guaranteed, burstable, best effort). Cores, bytes, bytes/s and counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from base.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class ScoredNodeColumns:
    """The nodes being scored; every array has one row per node.

    kinds             : names of the Kubernetes resources, "cpu" and "memory" first
    allocatable       : (n_nodes, n_kinds); NaN = unknown
    requested         : (n_nodes, n_kinds) by the pods there
    requested_nonzero : (n_nodes, 2) CPU and memory as kube-scheduler's LeastAllocated counts them
    capacity          : (n_nodes, n_resources); NaN or 0 = no limit
    virtual_available : (n_nodes, n_resources), may be below 0; NaN = not measured
    qos_pods          : (n_nodes, 3) pods there per QoS class
    qos_memory        : (n_nodes, 3) bytes predicted at the peak per QoS class
    predicted_share   : (n_nodes,) see `predicted_peak_score`; NaN = unknown
    exact_cost        : (n_nodes,) NaN = not on the short list
    out_of_memory     : (n_nodes,) memory is predicted to run out with the pod
    known             : (n_nodes,) False = nothing is known of the node, every score is neutral there
    """

    kinds: tuple[str, ...]
    allocatable: Floats
    requested: Floats
    requested_nonzero: Floats
    capacity: Floats
    virtual_available: Floats
    qos_pods: Floats
    qos_memory: Floats
    predicted_share: Floats
    exact_cost: Floats
    out_of_memory: Bools
    known: Bools

    def __len__(self) -> int:
        return len(self.known)

    def take(self, rows: Ints) -> ScoredNodeColumns:
        """The same columns of some of the nodes, in the order of `rows`."""
        return ScoredNodeColumns(
            kinds=self.kinds,
            allocatable=self.allocatable[rows],
            requested=self.requested[rows],
            requested_nonzero=self.requested_nonzero[rows],
            capacity=self.capacity[rows],
            virtual_available=self.virtual_available[rows],
            qos_pods=self.qos_pods[rows],
            qos_memory=self.qos_memory[rows],
            predicted_share=self.predicted_share[rows],
            exact_cost=self.exact_cost[rows],
            out_of_memory=self.out_of_memory[rows],
            known=self.known[rows],
        )


@dataclass(frozen=True, slots=True)
class ScoredPodColumns:
    """The pod to place.

    requests        : (n_kinds,) true requests
    nonzero         : (2,) CPU and memory as LeastAllocated counts them
    virtual_request : (n_resources,) what it is taken to use now; NaN = nothing known
    qos             : its QoS class, 0..2
    """

    requests: Floats
    nonzero: Floats
    virtual_request: Floats
    qos: int


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """Figures that do not depend on which nodes are being scored.

    qos_pods     : (3,) pods per QoS class
    qos_memory   : (3,) bytes predicted at the peak per QoS class
    allocatable  : (2,) cores and bytes of all nodes where they are known
    stack_weight : of the pod's pool, from `next_stack_weight`: 0 = spread, 1 = stack
    """

    qos_pods: Floats
    qos_memory: Floats
    allocatable: Floats
    stack_weight: float
