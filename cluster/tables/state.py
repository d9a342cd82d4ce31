"""The cluster as it is now, in tables: put in objects as they arrive, in any order, and read columns.

    Node, Pod, ReplicaSet, Job objects --> ClusterState --> columns, one row per node (columns.py)
                                                        --> seats: which pod of which service sits on which row
                                                        --> replicas of services (services.py, rollout.py)

What the tables hold depends only on the objects and the clock, not on the order of arrival. Each call takes effect at
once and returns what changed, so that others can keep tables of their own by adding and subtracting. Only where pods
sit is decided here; what they use is not.

Not safe for threads: the caller holds one lock around every call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from base.arrays import Bools, Floats, Ints
from cluster.tables.changes import (
    Change,
    JobChange,
    NodeAdded,
    NodeChanged,
    NodeRemoved,
    PodChange,
    PodsSeated,
    Seat,
    Seats,
    ServiceAdded,
)
from cluster.tables.columns import NodeColumns
from forecast.service_key import ServiceKey, service_of_pod
from kube.decoding.decoding import ApiObject, Kind
from kube.decoding.jobs import JobInfo
from kube.objects.bulk_records import bulk_records
from kube.objects.counted_pods import same_requests, seat_weight, serves, sits, waits
from kube.objects.kubernetes_version import NEWEST
from kube.objects.objects import NodeInfo, PodInfo, ReplicaSetInfo
from kube.objects.rollout import Rollouts, replicas_wanted
from kube.objects.services import ServiceNumbers


class ClusterState:
    """The tables. All that is public is to be read only.

    now          : unix seconds; only `expire` moves it
    version      : of Kubernetes, whose rules hold; the one attribute that others set
    names        : node names by row, '' = a free row; rows of nodes that went are used again
    row_of       : row by node name; nodes that pods name before they are seen have one, too
    nodes        : Node objects by row, None = not (yet, any more) there
    kinds        : column of a Kubernetes resource name: cpu, memory, pods, ephemeral-storage, others as they appear
    services     : services by index; those whose last pod went stay for a while (services.py)
    service_of   : index by service
    pods, replica_sets, jobs : objects by UID
    seat_of      : by pod UID; only pods that sit on a node and are not finished
    """

    def __init__(self, *, now: float = 0.0) -> None:
        self._columns, self._services, self._rollouts = NodeColumns(), ServiceNumbers(), Rollouts()
        self.now, self.version = now, NEWEST
        self.names, self.row_of, self.nodes = self._columns.names, self._columns.row_of, self._columns.nodes
        self.kinds = self._columns.kinds
        self.services, self.service_of = self._services.keys, self._services.index_of
        self.pods: dict[str, PodInfo] = {}
        self.replica_sets = self._rollouts.replica_sets
        self.jobs: dict[str, JobInfo] = {}
        self.seat_of: dict[str, Seat] = {}
        self._standing: dict[str, tuple[int, bool]] = {}  # pod UID -> its service, and whether it serves
        self._uid_of: dict[tuple[str, str], str] = {}  # namespace and name -> pod UID
        self._waiting: dict[str, float] = {}  # pods that are still to be bound -> since when they have the same gates
        self._owned: dict[str, dict[str, None]] = {}  # UID of a controller -> UIDs of its pods

    # Columns, one row per node; read-only views, valid until the next change.

    @property
    def n_rows(self) -> int:
        """Rows, free ones included."""
        return self._columns.n_rows

    @property
    def alive(self) -> Bools:
        """(n_rows,) a Node object exists."""
        return self._columns.alive

    @property
    def capacity(self) -> Floats:
        """(n_rows, n_kinds) in cores, bytes, counts; 0 = none."""
        return self._columns.capacity

    @property
    def allocatable(self) -> Floats:
        """(n_rows, n_kinds) in cores, bytes, counts; 0 = none."""
        return self._columns.allocatable

    @property
    def requested(self) -> Floats:
        """(n_rows, n_kinds) by all pods that sit there, terminating ones included; `pods` is their number."""
        return self._columns.requested

    @property
    def allocatable_units(self) -> Ints:
        """(n_rows, n_kinds) in whole units as kube-scheduler counts them: milli-cores, bytes, counts; 0 = none."""
        return self._columns.allocatable_units

    @property
    def requested_units(self) -> Ints:
        """(n_rows, n_kinds) in the same units, exact; `pods` is in `pod_count`."""
        return self._columns.requested_units

    @property
    def requested_nonzero(self) -> Floats:
        """(n_rows, 2) cores and bytes, containers without a request counted with a default."""
        return self._columns.requested_nonzero

    @property
    def pod_count(self) -> Ints:
        """(n_rows,)"""
        return self._columns.pod_count

    @property
    def qos_pods(self) -> Ints:
        """(n_rows, 3) pods by QosClass."""
        return self._columns.qos_pods

    @property
    def rows_version(self) -> int:
        """Another number whenever a column of any row has changed."""
        return self._columns.version

    def rows_changed_since(self, version: int) -> Ints:
        """Rows whose columns may have changed since `rows_version` was this."""
        return self._columns.changed_since(version)

    def request_vector(self, pod: PodInfo) -> Floats:
        """Return what a pod would add to `requested`, (n_kinds,); resources without a column are left out."""
        return self._columns.request_vector(pod)

    # Services

    def replicas(self, service: int) -> float:
        """Pods that share the service's load: those it wants during a rollout, else those that serve or will."""
        there = self._services.pods[service]
        wanted = replicas_wanted(self._rollouts.of(self.services[service]), there, self.now)
        return float(self._services.serving[service] if wanted is None else wanted)

    def replicas_with(self, service: ServiceKey) -> float:
        """The same for a service with a pod that may not be known yet, which will serve too."""
        known = self.service_of.get(service)
        if known is not None:
            return self.replicas(known)
        return float(max(replicas_wanted(self._rollouts.of(service), 1, self.now) or 1, 1))

    def take_changed_services(self) -> set[int]:
        """Services whose replicas may have changed since the last call."""
        return self._services.take_changed()

    # Pods

    def find_pod(self, namespace: str, name: str) -> PodInfo | None:
        """A pod by name."""
        uid = self._uid_of.get((namespace, name))
        return None if uid is None else self.pods[uid]

    def waiting(self) -> list[PodInfo]:
        """Return the pods that are still to be bound."""
        return [self.pods[uid] for uid in self._waiting]

    def gated_since(self, gate: str) -> list[float]:
        """Return since when (unix seconds) each pod has been held that this gate alone holds.

        A pod that came with it counts from its creation, one that lost its last other gate from then on.
        """
        return [since for uid, since in self._waiting.items() if self.pods[uid].gates == (gate,)]

    def service_key(self, pod: PodInfo) -> ServiceKey:
        """The service a pod belongs to, be it in the cluster or not."""
        owner = self.replica_sets.get(pod.owner_uid) or self.jobs.get(pod.owner_uid)
        return service_of_pod(
            pod.namespace,
            pod.name,
            pod.owner,
            owner_of_owner=None if owner is None else owner.owner,
            pod_labels=pod.labels,
        )

    def seats(self) -> Seats:
        """All seats as arrays."""
        return Seats.of(self.seat_of.values())

    # What happens

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> list[Change]:
        """A complete list of a kind: what is not in it is deleted, what is in it is put."""
        match kind:
            case Kind.NODES:
                nodes = {node.name: node for node in objects if isinstance(node, NodeInfo)}
                gone = [node.name for node in self.nodes if node is not None and node.name not in nodes]
                changes = [change for name in gone for change in self.delete_node(name)]
                return changes + [change for node in nodes.values() for change in self.put_node(node)]
            case Kind.PODS:
                pods = {pod.uid: pod for pod in objects if isinstance(pod, PodInfo)}
                changes = [change for uid in [u for u in self.pods if u not in pods] for change in self.delete_pod(uid)]
                return changes + [change for pod in pods.values() for change in self.put_pod(pod)]
            case Kind.REPLICA_SETS:
                # All before any pod is settled: the pods of a Deployment once, not once per ReplicaSet.
                replica_sets = {r.uid: r for r in objects if isinstance(r, ReplicaSetInfo)}
                return self._resettle(*self._rollouts.replace(replica_sets))
            case Kind.JOBS:
                jobs = {job.uid: job for job in objects if isinstance(job, JobInfo)}
                changes = [change for uid in [u for u in self.jobs if u not in jobs] for change in self.delete_job(uid)]
                return changes + [change for job in jobs.values() for change in self.put_job(job)]
            case _:
                raise ValueError(f"{kind.value} are not kept here")

    def put_node(self, node: NodeInfo) -> list[Change]:
        """A Node was added or modified."""
        row, is_new = self._columns.take_row(node.name)
        if self.nodes[row] == node:
            return []
        self._columns.set_node(row, node)
        return [NodeAdded(row) if is_new else NodeChanged(row)]

    def delete_node(self, name: str) -> list[Change]:
        """A Node is gone. Its row stays while pods name it."""
        row = self.row_of.get(name)
        if row is None or self.nodes[row] is None:
            return []
        self._columns.set_node(row, None)
        return [NodeRemoved(row) if self._columns.free_if_unused(row) else NodeChanged(row)]

    def put_pod(self, pod: PodInfo) -> list[Change]:
        """A Pod was added or modified. A pod of the same name and an earlier creation is gone, a later one stays."""
        changes: list[Change] = []
        namesake = self._uid_of.get((pod.namespace, pod.name))
        if namesake is not None and namesake != pod.uid:
            if self.pods[namesake].created > pod.created:
                # News of a pod that has since been replaced; what is known of it, if anything, is as old.
                return self.delete_pod(pod.uid)
            changes = self.delete_pod(namesake)
        known = self.pods.get(pod.uid)
        if known is not None:
            if known == pod:
                return changes
            if not _same_names(known, pod):
                self._forget_names(known)
        self.pods[pod.uid] = pod
        if waits(pod):
            is_gated_as_before = known is not None and known.gates == pod.gates
            since = pod.created if known is None else self.now
            self._waiting[pod.uid] = self._waiting.get(pod.uid, since) if is_gated_as_before else since
        else:
            self._waiting.pop(pod.uid, None)
        if known is None or not _same_names(known, pod):
            self._uid_of[pod.namespace, pod.name] = pod.uid
            if pod.owner_uid:
                self._owned.setdefault(pod.owner_uid, {})[pod.uid] = None
        return changes + self._settle(pod.uid, known, pod)

    def pods_of(self, owner_uid: str) -> tuple[PodInfo, ...]:
        """The pods that a controller owns: a ReplicaSet, a Job."""
        return tuple(self.pods[uid] for uid in self._owned.get(owner_uid, ()))

    def service_index(self, uid: str) -> int:
        """Index of the service of a pod that is here."""
        return self._standing[uid][0]

    def seat_all(self, pods: Sequence[PodInfo], rows: Sequence[int]) -> PodsSeated:
        """Pods that wait here are bound now, as if each had been put, in this order; all are alike but for their nodes.

        pods : as they are now, each on the node of its row
        rows : (n_pods,) in use
        """
        serves_now = self._serves(pods[0])
        weights: dict[int, float] = {}
        services: list[int] = []
        uids = [pod.uid for pod in pods]
        for uid in uids:
            # Its service is the one it waited in, see _settle.
            service, served = self._standing[uid]
            self._services.turn(service, served=served, serves=serves_now)
            if served != serves_now:
                self._standing[uid] = (service, serves_now)
            if service not in weights:
                weights[service] = seat_weight(self.services[service], serves=serves_now)
            services.append(service)
            del self._waiting[uid]
        seats = bulk_records(Seat, len(pods), node=rows, service=services, weight=map(weights.__getitem__, services))
        self.pods.update(zip(uids, pods, strict=True))
        self.seat_of.update(zip(uids, seats, strict=True))
        self._columns.add_pods(np.array(rows, dtype=np.int64), pods[0])
        return PodsSeated(tuple(pods), tuple(seats))

    def delete_pod(self, uid: str) -> list[Change]:
        """A Pod is gone."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return []
        self._waiting.pop(uid, None)
        self._forget_names(pod)
        return self._settle(uid, pod, None)

    def put_replica_set(self, replica_set: ReplicaSetInfo) -> list[Change]:
        """A ReplicaSet was added or modified: its pods may belong to another service, and a rollout may begin."""
        if self.replica_sets.get(replica_set.uid) == replica_set:
            return []
        return self._resettle([replica_set.uid], self._rollouts.put(replica_set))

    def delete_replica_set(self, uid: str) -> list[Change]:
        """A ReplicaSet is gone."""
        return self._resettle([uid], self._rollouts.delete(uid))

    def put_job(self, job: JobInfo) -> list[Change]:
        """A Job was added or modified: its pods may belong to another service."""
        known = self.jobs.get(job.uid)
        if known == job:
            return []
        self.jobs[job.uid] = job
        has_same_owner = known is not None and known.owner == job.owner
        changes = [] if has_same_owner else self._resettle([job.uid], ())
        return [*changes, JobChange(job, known)]

    def delete_job(self, uid: str) -> list[Change]:
        """A Job is gone."""
        return self._resettle([uid], ()) if self.jobs.pop(uid, None) else []

    def expire(self, now: float) -> list[Change]:
        """What time alone changes: rollouts and pods that wait for too long. The clock may go backwards."""
        turned = self._rollouts.turned(self.now, now)
        self.now = now
        changes = self._resettle((), turned)
        for uid in self._waiting:
            if self._standing[uid][1] != self._serves(self.pods[uid]):
                changes += self._settle(uid, self.pods[uid], self.pods[uid])
        return changes

    # How

    def _resettle(self, owners: Iterable[str], deployments: Iterable[ServiceKey]) -> list[Change]:
        """Look again at the pods of these owners and Deployments."""
        again = dict.fromkeys(owners)
        for deployment in deployments:
            self._services.mark_changed(deployment)
            again.update((replica_set.uid, None) for replica_set in self._rollouts.of(deployment))
        changes: list[Change] = []
        for owner in again:
            for uid in self._owned.get(owner, ()):
                changes += self._settle(uid, self.pods[uid], self.pods[uid])
        return changes

    def _settle(self, uid: str, known: PodInfo | None, pod: PodInfo | None) -> list[Change]:
        """Bring the tables from what was known of a pod to what is; None = it was not, or is no longer, there."""
        changes: list[Change] = []
        before, after = self.seat_of.get(uid), None
        standing = self._standing.pop(uid, None)
        if pod is not None:
            pod_serves = self._serves(pod)
            if standing is not None and known is not pod and _same_service(known, pod):
                service, key = standing[0], self.services[standing[0]]
                self._services.turn(service, served=standing[1], serves=pod_serves)
                standing = None
            else:
                key = self.service_key(pod)
                service, is_new = self._services.join(key, serves=pod_serves)
                if is_new:
                    changes.append(ServiceAdded(service))
            self._standing[uid] = (service, pod_serves)
            if sits(pod):
                row, is_new = self._columns.take_row(pod.node)
                if is_new:
                    changes.append(NodeAdded(row))
                after = Seat(row, service, seat_weight(key, serves=pod_serves))
        if standing is not None:
            self._services.leave(standing[0], served=standing[1])
        if before == after and (after is None or known is pod or same_requests(known, pod)):
            after = before
        else:
            if after is not None and pod is not None:
                self._columns.add_pod(after.node, pod)
                self.seat_of[uid] = after
            else:
                del self.seat_of[uid]
            if before is not None and known is not None:
                self._columns.remove_pod(before.node, known)
        mentioned = pod if pod is not None else known
        if mentioned is not None and (known is not pod or before != after):
            changes.append(PodChange(mentioned, before, after))
        if before is not None and self._columns.free_if_unused(before.node):
            changes.append(NodeRemoved(before.node))
        return changes

    def _serves(self, pod: PodInfo) -> bool:
        superseded = self._rollouts.is_superseded(pod.owner_uid, self.now)
        return serves(pod, superseded=superseded, now=self.now)

    def _forget_names(self, pod: PodInfo) -> None:
        if self._uid_of.get((pod.namespace, pod.name)) == pod.uid:
            del self._uid_of[pod.namespace, pod.name]
        owned = self._owned.get(pod.owner_uid)
        if owned is not None:
            owned.pop(pod.uid, None)
            if not owned:
                del self._owned[pod.owner_uid]


def _same_names(a: PodInfo, b: PodInfo) -> bool:
    """Whether two states of a pod are found under the same names."""
    return a.name == b.name and a.namespace == b.namespace and a.owner_uid == b.owner_uid


def _same_service(a: PodInfo | None, b: PodInfo) -> bool:
    """Whether two states of a pod belong to the same service: what else could change that settles the pod by itself."""
    return a is not None and _same_names(a, b) and a.owner == b.owner and a.labels == b.labels
