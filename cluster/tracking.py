"""Everything the scorer knows, in memory: the cluster's columns, what is predicted for it, what was measured last.

Objects and measurements go in, tables follow. No threads, no clock, no I/O: `scorer.scorer` holds the lock and
`scorer.background` feeds it.

    objects --> ClusterState --changes--> PredictedCluster   curves of the pods on their nodes
                             --changes--> Charges            virtual requests of pods no metric has seen
    usage   --> live error --> PredictedCluster
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from base.arrays import Bools, Floats
from base.host_names import without_domain
from cluster.live.charges import Charges, Departed
from cluster.live.usage import NodeUsage, usage_by_row
from cluster.live.virtual_request import VirtualRequest, live_error, virtual_available, virtual_request
from cluster.options import TableOptions
from cluster.predicted.array_rows import grown
from cluster.predicted.load_parts import PlacedPod
from cluster.predicted.node_capacity import CapacityColumns, KnownCapacities, UnreadCapacity
from cluster.predicted.pod_bounds import Most, PodBounds, beyond
from cluster.predicted.pod_profiles import Profiles
from cluster.predicted.pod_runs import Run, expected_run, lasting
from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.runs.expected import ExpectedRuns
from cluster.runs.run_times import ObservedRuns, RunTimes
from cluster.tables.changes import Change, JobChange, NodeAdded, NodeChanged, NodeRemoved, PodChange, PodsSeated, Seat
from cluster.tables.state import ClusterState
from cluster.tables_anew import ClusterSnapshot
from cluster.usable_nodes import EveryNode, NodeUsability
from cluster.water_level import StackWeights
from forecast.calendar import SLOT_MINUTES
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from kube.objects.counted_pods import FINISHED
from kube.objects.objects import PodInfo, QosClass

_SLOT_SECONDS = 60.0 * SLOT_MINUTES


class TrackedCluster:
    """The tables. `now` is in unix seconds throughout."""

    def __init__(
        self,
        options: TableOptions,
        *,
        now: float,
        usable_nodes: Callable[[TrackedCluster], NodeUsability] | None = None,
    ) -> None:
        """usable_nodes: makes what knows which nodes pods could use; None = every ready node takes every pod."""
        self.options, self.now = options, now
        self.state = ClusterState(now=now)
        self.predicted: PredictedCluster | None = None
        self.capacities = KnownCapacities(None, options.capacities)
        self.charges = Charges(
            len(RESOURCES), window_seconds=options.usage_window, grace_seconds=options.ladder.fresh_usage
        )
        self.departed = Departed(options.usage_window)
        self._stack_weights = StackWeights(options.stacking)
        times = RunTimes()
        self.expected_runs = ExpectedRuns(
            times, jobs=self.state.jobs, default=options.default_run, scheduler_names=options.job_schedulers
        )
        # Seconds a pod is expected to run from its start; None = it runs on and on. Under the lock, of every pod that
        # changes or is asked about.
        self.run_of: Callable[[PodInfo, ServiceKey], float | None] = self.expected_runs.seconds
        self.observed_runs = ObservedRuns(self, times, self.expected_runs.is_job)
        # Tables that follow the same changes.
        self.listeners: list[Callable[[Sequence[Change]], None]] = [self.observed_runs.apply]
        # One row per node, more rows than used.
        self._capacity, self._bounds = CapacityColumns(), PodBounds()
        self._beyond: dict[str, None] = {}  # pods that request or declare more than they can use
        self._usage = np.full((0, len(RESOURCES)), np.nan)
        self._sampled = np.full(0, np.nan)
        self._live_nodes: Bools = np.zeros(0, dtype=bool)
        self._shadows: dict[str, int] = {}  # pods that are predicted on the node of another row than theirs
        self._runs: dict[str, Run] = {}  # of pods that sit and run for a while only
        self._following: ClusterSnapshot | None = None  # tables are being made from it at this moment
        self.usable_nodes = EveryNode(self.state) if usable_nodes is None else usable_nodes(self)
        self.listeners.append(self.usable_nodes.apply)

    # Columns

    @property
    def capacity(self) -> Floats:
        """(n_rows, n_resources) physical, NaN = not a limit."""
        return self._capacity.amount[: self.state.n_rows]

    @property
    def capacity_assumed(self) -> Bools:
        """(n_rows, n_resources) whether the trainer assumed the capacity."""
        return self._capacity.assumed[: self.state.n_rows]

    def unread_capacities(self) -> tuple[UnreadCapacity, ...]:
        """Nodes whose capacity annotation has entries that cannot be read; the others of its entries are in use."""
        return self._capacity.unread()

    def beyond_nodes(self) -> tuple[str, ...]:
        """Pods that request or declare more than their node has, or than any node where they have none, by name."""
        pods = (self.state.pods[uid] for uid in self._beyond)
        return tuple(sorted(f"{pod.namespace}/{pod.name}" for pod in pods))

    @property
    def sampled(self) -> Floats:
        """(n_rows,) unix seconds of each node's last measurement, NaN = never."""
        return self._sampled[: self.state.n_rows]

    @property
    def runs(self) -> Mapping[str, Run]:
        """Of pods that sit and run for a while only, by UID; to be read only."""
        return self._runs

    def measured_nodes(self) -> Bools:
        """(n_rows,) nodes measured recently enough to say what they use now."""
        age = self.now - self.sampled
        # A sample far ahead of the clock is from before the clock was set back. NaN = no.
        return np.asarray(np.abs(age) <= self.options.ladder.fresh_usage)

    def measured_usage(self) -> Floats:
        """(n_rows, n_resources) what nodes were last measured to use; NaN = not measured recently enough."""
        return np.where(self.measured_nodes()[:, None], self._usage[: self.state.n_rows], np.nan)

    def virtual_available(self) -> Floats:
        """(n_rows, n_resources) NaN = no limit, or not measured."""
        return virtual_available(self.capacity, self.measured_usage(), self.charges.total(self.state.n_rows))

    def stack_weight(self, pod: PodInfo) -> float:
        """How much stacking counts for a pod, by the water level of the pool of its profile: 0 = spread, 1 = stack."""
        return self._stack_weights.of(self.usable_nodes.pool_of(pod))

    def water_levels(self) -> Mapping[str, tuple[float, float]]:
        """Return the water level of each pool of nodes and its stack weight, 0..1 each, as of the last tick."""
        weights = self._stack_weights
        return {pool: (level, weights.of(pool)) for pool, level in weights.levels.items()}

    def qos_memory(self) -> Floats:
        """(n_rows, 3) bytes predicted at the peak of the pods of each QoS class; 0 without a model."""
        if self.predicted is None:
            return np.zeros((self.state.n_rows, len(QosClass)))
        return _fitted(self.predicted.qos_memory, self.state.n_rows, fill=0.0)

    # What happens

    def apply(self, changes: Iterable[Change]) -> None:
        """Let the other tables follow what happened to the cluster's."""
        changes = list(changes)
        other: set[int] = set()  # rows of nodes that have another capacity now, and pods
        for change in changes:
            match change:
                case PodChange():
                    self._pod_changed(change)
                case PodsSeated():
                    self._pods_seated(change)
                case NodeAdded(row) | NodeChanged(row):
                    if self.state.nodes[row] is None:
                        self._end_shadows_on(row)
                    if self._node_changed(row) and self.state.pod_count[row]:
                        other.add(row)
                case NodeRemoved(row):
                    self._end_shadows_on(row)
                    self._node_changed(row)
                    self._usage[row], self._sampled[row] = np.nan, np.nan
                case JobChange():
                    self._job_changed(change)
                case _:
                    pass
        if other:
            self._look_again_at_pods_on(other)
        if changes:
            for listener in self.listeners:
                listener(changes)

    def measured(self, measured: NodeUsage) -> None:
        """The nodes were measured."""
        row_of: dict[str, int] = {}
        for name, row in self.state.row_of.items():
            node = self.state.nodes[row]
            row_of.update(dict.fromkeys(node.addresses if node is not None else (), row))
            row_of[name] = row
        strange = [name for name in measured.nodes if name not in row_of]
        row_of |= {name: row_of[node] for name, node in without_domain(strange, self.state.row_of).items()}
        self._ensure(self.state.n_rows)
        usage, sampled = usage_by_row(measured, row_of, len(self._usage))
        # A sample without a figure is none. NaN = not measured this time: what was known stays, ageing.
        sampled = np.where(np.isfinite(usage).any(axis=1), sampled, np.nan)
        # What seems to be from the future is from before the clock was set back.
        known = np.where(self._sampled > self.now, 0.0, np.nan_to_num(self._sampled))
        newer = sampled >= known
        self._usage[newer], self._sampled[newer] = usage[newer], sampled[newer]
        self.charges.measured(self._sampled)
        self._correct()

    def tick(self, now: float) -> None:
        """Time has passed (or was set back)."""
        self.now = now
        self.apply(self.state.expire(now))
        self.charges.expire(now)
        self.departed.forget(now)
        changed = self.state.take_changed_services()
        if self.predicted is not None:
            for service in changed:
                self.predicted.set_replicas(self.state.services[service], self.state.replicas(service))
            if not np.array_equal(self._live_nodes, self.measured_nodes()):
                self._correct()  # a node's last measurement has become too old to say anything
        self._stack_weights.follow(self.state, self.usable_nodes.pools())

    def set_slot(self, slot: int) -> None:
        """Another half hour of the same local day is under way."""
        if self.predicted is not None and slot != self.predicted.horizon.slot:
            self.predicted.set_slot(slot)
            self._correct()

    def install(
        self, predicted: PredictedCluster, capacities: KnownCapacities, since: ClusterSnapshot | None = None
    ) -> None:
        """Use another model, or the tables of another day. Both must describe the cluster as it is now (`catch_up`).

        since : what `predicted` was made from; nodes that are as they were then need not be looked at again
        """
        self.predicted, self.capacities = predicted, capacities
        self._ensure(self.state.n_rows)
        then = {} if since is None else dict(since.nodes)
        same = [row for row, node in then.items() if row < self.state.n_rows and self.state.nodes[row] is node]
        self._capacity.put_all(same, predicted.capacity, predicted.capacity_assumed)
        for row in same:
            self._bounds.put(row, self._capacity.amount[row])
        other = set(range(self.state.n_rows)).difference(same)
        for row in other:
            if self.state.nodes[row] is not None or predicted.name_of(row):
                self._node_changed(row)
        if since is not None and other:
            self._look_again_at_pods_on(other)
        # After a start pods come before the first model and are charged what they request.
        for uid in self.charges.open():
            if (pod := self.state.pods.get(uid)) is not None:
                self.charges.reprice(uid, self.expected_use(pod).amount)
        self._correct()

    def snapshot(self, profiles: Profiles) -> ClusterSnapshot:
        """What `predict` needs, in copies; what happens from now on is noted in it for `catch_up`.

        profiles : of the model to predict by, whose run lengths are used from now on
        """
        state = self.state
        self.expected_runs.use_model(profiles.runs)
        self._look_again_at_runs()
        self._following = ClusterSnapshot(
            nodes=tuple((row, node) for row, node in enumerate(state.nodes) if node is not None),
            pods=dict(state.pods),
            seats=dict(state.seat_of),
            services=tuple(state.services),
            replicas={key: state.replicas(service) for key, service in state.service_of.items()},
            shadows=dict(self._shadows),
            changed={},
            runs=dict(self._runs),
        )
        return self._following

    def catch_up(self, predicted: PredictedCluster, since: ClusterSnapshot) -> None:
        """Let tables made from the latest snapshot follow what happened since it was taken."""
        state = self.state
        for uid in since.changed:
            seat = state.seat_of.get(uid)
            if seat is None:
                predicted.remove(uid)
            else:
                key = state.services[seat.service]
                replicas, shadow = state.replicas(seat.service), self._shadows.get(uid)
                run = self._runs.get(uid)
                predicted.place(state.pods[uid], key, seat.node, seat.weight, replicas, shadow=shadow, run=run)
        for key, service in state.service_of.items():
            predicted.set_replicas(key, state.replicas(service))
        self._following = None

    def believe(self, uid: str, row: int) -> None:
        """Predict as if a bound pod sat on the node of another row, until it or that node is gone.

        For a shadow: its next advice has to reckon with where its earlier advice would have led, or it gives the same
        again and again. What is measured, requested and charged stays where it is. Nothing for a pod that is not bound.
        """
        seat = self.state.seat_of.get(uid)
        if seat is None:
            return
        if row == seat.node:
            self._shadows.pop(uid, None)
        else:
            self._shadows[uid] = row
        self._place(uid, seat)

    @contextmanager
    def without(self, uid: str) -> Iterator[None]:
        """The predicted load as if a pod were not there, to judge where it might be instead."""
        placed = None if self.predicted is None else self.predicted.placed.get(uid)
        if self.predicted is None or placed is None or not placed.weight:
            yield
            return
        self.predicted.load.add(placed.profile, placed.counts_on, -placed.weight)
        try:
            yield
        finally:
            self.predicted.load.add(placed.profile, placed.counts_on, placed.weight)

    def expected_use(self, pod: PodInfo, profile: int | None = None) -> VirtualRequest:
        """What a pod is taken to use now. profile: of the pod, where it is known already."""
        predicted = self.predicted
        if predicted is None:
            return virtual_request(pod, None, self.most_of(pod))
        if profile is None:
            profile = self.profile(pod)
        known = predicted.keys[profile].service is not None
        expected = predicted.use_now(profile) if known else None
        return virtual_request(pod, expected, self.most_of(pod))

    def most_of(self, pod: PodInfo) -> Most:
        """What the pod can use at most: (n_resources,), what its node has, or the largest node if it waits."""
        return self._bounds.of(self._row_of(pod))

    def profile(self, pod: PodInfo) -> int:
        """Profile of a pod, be it in the cluster or not. Needs a model."""
        assert self.predicted is not None
        key = self.state.service_key(pod)
        run, row = self.expected_run(pod, key), self._row_of(pod)
        return self.predicted.profile(pod, key, self.state.replicas_with(key), run, row)

    def known_profile(self, pod: PodInfo) -> int | None:
        """Profile of a pod, if there is one already."""
        key = self.state.service_key(pod)
        if self.predicted is None:
            return None
        return self.predicted.known_profile(pod, key, self.expected_run(pod, key), self._row_of(pod))

    def expected_run(self, pod: PodInfo, service: ServiceKey) -> Run | None:
        """When a pod runs; None = on and on. One that waits would start now, one that is bound has since it was."""
        return expected_run(pod.started, self.run_of(pod, service), self.now, self._runs.get(pod.uid))

    # Inside

    def _pod_changed(self, change: PodChange) -> None:
        pod, after = change.pod, change.after
        if self._following is not None:
            self._following.changed[pod.uid] = None
        self._note_beyond(pod, None if after is None else after.node)
        if after is None:
            if change.before is not None or pod.uid not in self.state.pods or pod.phase in FINISHED:
                self._pod_left(pod)
            return  # else it still waits to be bound, and may be charged provisionally
        if change.before is not None and change.before.node != after.node:
            self._departs(pod)
            self._shadows.pop(pod.uid, None)
        self._place(pod.uid, after, pod)
        known = self.charges.knows(pod.uid, after.node, pod.started)
        if not known and not self.charges.start(pod.uid, after.node, pod.started):
            self.charges.charge(pod.uid, after.node, self.expected_use(pod).amount, pod.started, self.now)

    def _job_changed(self, change: JobChange) -> None:
        """Its pods run no longer than its activeDeadlineSeconds allows."""
        before = None if change.before is None else change.before.active_deadline_seconds
        if before == change.job.active_deadline_seconds:
            return
        for pod in self.state.pods_of(change.job.uid):
            if (seat := self.state.seat_of.get(pod.uid)) is not None:
                self._place(pod.uid, seat, pod)

    def _look_again_at_runs(self) -> None:
        """Take what is known of run lengths by now for the pods that sit already."""
        for uid, run in self._runs.items():
            pod, key = self.state.pods[uid], self.state.services[self.state.seat_of[uid].service]
            if (seconds := self.run_of(pod, key)) is not None:
                self._runs[uid] = lasting(run, seconds)
        if self.expected_runs.knows_groups:
            for uid, seat in self.state.seat_of.items():
                key = self.state.services[seat.service]
                if uid not in self._runs and (found := self.expected_run(self.state.pods[uid], key)) is not None:
                    self._runs[uid] = found

    def _pods_seated(self, change: PodsSeated) -> None:
        """As `_pod_changed` of each. Pods that wait are in no other table, these have not started, and the profile of
        the first is that of all."""
        pod, seat = change.pods[0], change.seats[0]
        if any(beyond(pod, self._bounds.of(row)) for row in {one.node for one in change.seats}):
            for one, its_seat in zip(change.pods, change.seats, strict=True):  # each is bounded by its own node
                self._pod_changed(PodChange(one, None, its_seat))
            return
        uids, nodes = [one.uid for one in change.pods], [one.node for one in change.seats]
        if self._following is not None:
            self._following.changed.update(dict.fromkeys(uids))
        profile, key = None, self.state.services[seat.service]
        if (run := self.expected_run(pod, key)) is not None:
            self._runs.update(dict.fromkeys(uids, run))
        if self.predicted is not None:
            profile = self.predicted.profile(pod, key, self.state.replicas(seat.service), run)
            like = PlacedPod(seat.node, profile, seat.weight, self.predicted.is_present(key), int(pod.qos))
            self.predicted.place_all(uids, nodes, like)
        self.charges.charge_all(uids, nodes, self.expected_use(pod, profile).amount)

    def _place(self, uid: str, seat: Seat, pod: PodInfo | None = None) -> None:
        """Let the predicted load have a pod on its seat, or where it is believed to be. pod: None = as it is known."""
        if self._following is not None:
            self._following.changed[uid] = None
        key, pod = self.state.services[seat.service], pod or self.state.pods[uid]
        run = self.expected_run(pod, key)
        if run is not None:
            self._runs[uid] = run
        elif self._runs:
            self._runs.pop(uid, None)
        if self.predicted is not None:
            shadow = self._shadows.get(uid)
            if not self.predicted.has_placed(pod, key, seat.node, seat.weight, shadow, run):
                replicas = self.state.replicas(seat.service)
                self.predicted.place(pod, key, seat.node, seat.weight, replicas, shadow=shadow, run=run)

    def _end_shadows_on(self, row: int) -> None:
        """The node is gone: what was believed to be there counts where it is."""
        for uid in [uid for uid, believed in self._shadows.items() if believed == row]:
            del self._shadows[uid]
            if (seat := self.state.seat_of.get(uid)) is not None:
                self._place(uid, seat)

    def _pod_left(self, pod: PodInfo) -> None:
        self._departs(pod)
        self._shadows.pop(pod.uid, None)
        self._runs.pop(pod.uid, None)
        if self.predicted is not None:
            self.predicted.remove(pod.uid)
        self.charges.release(pod.uid)

    def _departs(self, pod: PodInfo) -> None:
        placed = None if self.predicted is None else self.predicted.placed.get(pod.uid)
        if self.predicted is not None and placed is not None and placed.present and pod.started is not None:
            use = self.predicted.use_at(placed.profile, self._position(self.options.usage_window / 2))
            self.departed.add(placed.node, use, pod.started, self.now)

    def _row_of(self, pod: PodInfo) -> int | None:
        return self.state.row_of.get(pod.node) if pod.node else None

    def _note_beyond(self, pod: PodInfo, row: int | None) -> None:
        if pod.uid in self.state.pods and pod.phase not in FINISHED and beyond(pod, self._bounds.of(row)):
            self._beyond[pod.uid] = None
        else:
            self._beyond.pop(pod.uid, None)

    def _look_again_at_pods_on(self, rows: set[int]) -> None:
        """Bound the pods on nodes by what these have now."""
        for uid, seat in self.state.seat_of.items():
            if seat.node in rows:
                pod = self.state.pods[uid]
                self._note_beyond(pod, seat.node)
                self._place(uid, seat, pod)
                if self.charges.left(uid):
                    self.charges.reprice(uid, self.expected_use(pod).amount)

    def _node_changed(self, row: int) -> bool:
        """Follow what the node of a row has; whether that has changed."""
        self._ensure(row + 1)
        node = self.state.nodes[row]
        if node is None:
            self._capacity.clear(row)
            self._bounds.clear(row)
            if self.predicted is not None:
                self.predicted.clear_node(row)
            return False
        known = self.capacities.look_up(node)
        self._capacity.put(row, node.name, known)
        if self.predicted is not None:
            self.predicted.set_node(row, node.name, known.amount, known.assumed)
        return self._bounds.put(row, known.amount)

    def _correct(self) -> None:
        """Hand the difference between what is measured and what is expected to the predicted load."""
        predicted = self.predicted
        self._live_nodes = self.measured_nodes()
        if predicted is None:
            return
        n = predicted.load.n_nodes
        sampled = _fitted(self._sampled, n)
        live = _fitted(self._live_nodes.astype(np.float64), n) == 1.0
        # The middle of the window that each sample is the mean of.
        position = self._position(self.options.usage_window / 2) - (self.now - sampled) / _SLOT_SECONDS
        unseen = np.zeros((n, len(RESOURCES)))
        for uid, (node, left) in self.charges.open().items():
            placed = predicted.placed.get(uid)
            if placed is not None and placed.present and node < n:
                unseen[node] += left * predicted.use_at(placed.profile, float(position[node]))
        unseen -= self.departed.in_metrics(sampled, len(RESOURCES))
        usage = np.where(live[:, None], _fitted(self._usage, n), np.nan)
        error = live_error(usage, predicted.expected_at(position), unseen)
        predicted.load.set_live_error(error, predicted.horizon.fading())

    def _position(self, seconds_ago: float) -> float:
        """Return the half hours from midnight of the horizon's first day until `seconds_ago`."""
        assert self.predicted is not None
        return self.predicted.horizon.position(self.now) - seconds_ago / _SLOT_SECONDS

    def _ensure(self, n_rows: int) -> None:
        n_rows = max(n_rows, self.state.n_rows)
        self._usage, self._sampled = grown(self._usage, n_rows, np.nan), grown(self._sampled, n_rows, np.nan)
        self._capacity.ensure(n_rows)


def _fitted(rows: Floats, n_rows: int, fill: float = np.nan) -> Floats:
    """The first `n_rows` rows; `fill` where there are fewer."""
    return grown(rows, n_rows, fill)[:n_rows]
