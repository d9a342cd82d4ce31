"""The live cluster seen through a model: every pod's curve on the node it sits on, kept up to date pod by pod.

One of these belongs to one model and one local day; a new model or midnight makes a new one. Rows are those of
`cluster.tables.state.ClusterState`. Pods are known by UID: the same change twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32
from cluster.predicted.array_rows import add_to_rows, grown
from cluster.predicted.horizon import Horizon, between_slots
from cluster.predicted.load import PredictedLoad
from cluster.predicted.load_parts import NodeBases, PlacedPod, Sums
from cluster.predicted.pod_bounds import VIRTUAL_REQUEST_ANNOTATION, PodBounds
from cluster.predicted.pod_profiles import ProfileKey, Profiles
from cluster.predicted.pod_runs import Run, RunHours, half_hours, under_way
from cluster.predicted.power_growth import RESOURCE_WEIGHTS
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import MEMORY, RESOURCES
from forecast.service_key import ServiceKey
from kube.objects.bulk_records import bulk_records
from kube.objects.objects import PodInfo

_MOST_IDLE_PROFILES = 512
"""Profiles without pods that are kept: those of requests. A row has 7 kB, and any client may ask."""


class PredictedCluster:
    """Predicted load of every node, with what the pods on it are expected to use right now."""

    def __init__(self, profiles: Profiles, horizon: Horizon) -> None:
        self.profiles, self.horizon = profiles, horizon
        self.bases, self.bounds = NodeBases(profiles.model), PodBounds()
        self.load = PredictedLoad(horizon.weights(), RESOURCE_WEIGHTS)
        self.keys: list[ProfileKey] = []
        self._profile_of: dict[ProfileKey, int] = {}
        self._declaring: dict[ServiceKey, dict[ProfileKey, None]] = {}  # in addition to that of the service itself
        self._replicas: list[float] = []
        self._today = np.zeros((0, len(RESOURCES), SLOTS_PER_DAY), dtype=np.float32)  # of one pod, by profile
        self._memory_peak: list[float] = []
        self.unknown_pods = 0  # that count, of services the model does not know
        self._users: list[int] = []  # pods placed, by profile
        self._idle: dict[int, None] = {}  # profiles without pods, longest unused first
        self._present: list[dict[int, int]] = []  # pods that use something now on each node, by profile
        self.placed: dict[str, PlacedPod] = {}
        # By row and profile: pods that sit there and count elsewhere, less those that count there and sit elsewhere.
        self._moved: dict[int, dict[int, float]] = {}
        self._names: dict[int, str] = {}
        # One row per node, more rows than used.
        self._capacity = np.full((0, len(RESOURCES)), np.nan)
        self._assumed: Bools = np.zeros((0, len(RESOURCES)), dtype=bool)
        self._base_today = np.zeros((0, len(RESOURCES), SLOTS_PER_DAY), dtype=np.float32)
        self._pods_today = np.zeros((0, len(RESOURCES), SLOTS_PER_DAY))
        self._qos_memory = np.zeros((0, 3))
        self._has_soft_load = False

    # Nodes

    def set_node(self, row: int, name: str, capacity: AnyFloats, assumed: Bools | None = None) -> None:
        """Add a node, or follow its change.

        capacity : (n_resources,) NaN = not a limit
        assumed  : (n_resources,) which capacities the trainer assumed; None = none of them
        """
        self._ensure(row)
        self._assumed[row] = False if assumed is None else assumed
        if self._names.get(row) == name and np.array_equal(capacity, self._capacity[row], equal_nan=True):
            return
        self._names[row], self._capacity[row] = name, capacity
        self.bounds.put(row, capacity)
        base = self.bases.mean(name, capacity, self.horizon.days)
        self._base_today[row] = base[:, :SLOTS_PER_DAY]
        self.load.set_node(row, capacity, base)

    def clear_node(self, row: int) -> None:
        """The node is gone; its row may be given to another."""
        self._ensure(row)
        self._names.pop(row, None)
        self._capacity[row], self._assumed[row] = np.nan, False
        self.bounds.clear(row)
        self._base_today[row] = 0.0
        self.load.clear_node(row)

    # Pods

    def place(
        self,
        pod: PodInfo,
        service: ServiceKey,
        node: int,
        weight: float,
        replicas: float,
        *,
        shadow: int | None = None,
        run: Run | None = None,
    ) -> None:
        """The pod is on a node, whatever was known of it before. shadow: see PlacedPod; run: None = on and on."""
        profile = self.profile(pod, service, replicas, run, node)
        present = self.is_present(service)
        self._place(pod.uid, PlacedPod(node, profile, weight, present, int(pod.qos), shadow=shadow))

    def has_placed(
        self,
        pod: PodInfo,
        service: ServiceKey,
        node: int,
        weight: float,
        shadow: int | None,
        run: Run | None = None,
    ) -> bool:
        """Whether placing the pod so would change nothing."""
        placed = self.placed.get(pod.uid)
        if placed is None or (placed.node, placed.weight, placed.qos, placed.shadow) != (node, weight, pod.qos, shadow):
            return False
        key = self.keys[placed.profile]
        declares = key.declared or VIRTUAL_REQUEST_ANNOTATION in pod.annotations
        if key.service is not None and key.run is None and run is None and not declares:
            return key.service == service
        return placed.present == self.is_present(service) and key == self._key(pod, service, run, node)

    def is_present(self, service: ServiceKey) -> bool:
        """Whether pods of the service use something now that the base load of nodes does not have already."""
        return not service.belongs_to_node and not self.profiles.is_expected(service)

    def place_all(self, uids: Sequence[str], nodes: Sequence[int], like: PlacedPod) -> None:
        """Pods of which none is known here are on nodes, as if each had been placed, in this order.

        like : what holds for all of them, its node left aside; no shadow
        """
        rows, profile = np.array(nodes, dtype=np.int64), like.profile
        self._ensure(int(rows.max()))
        shared = {name: repeat(getattr(like, name)) for name in ("profile", "weight", "present", "qos", "shadow")}
        self.placed.update(zip(uids, bulk_records(PlacedPod, len(uids), node=nodes, **shared), strict=True))
        self._users[profile] += len(uids)
        self._idle.pop(profile, None)
        if self.keys[profile].service is None and like.weight:
            self.unknown_pods += len(uids)
        if like.present:
            present = self._present[profile]
            for node in nodes:
                present[node] = present.get(node, 0) + 1
            add_to_rows(self._pods_today, rows, self._today[profile])
        if like.weight:
            self.load.add_many(profile, nodes)  # their weight is 1 each
            add_to_rows(self._qos_memory[:, like.qos], rows, self._memory_peak[profile])

    def remove(self, uid: str) -> None:
        """The pod is gone; harmless if it was never there."""
        placed = self.placed.pop(uid, None)
        if placed is not None:
            self._count(placed, -1)

    def profile(
        self, pod: PodInfo, service: ServiceKey, replicas: float, run: Run | None = None, row: int | None = None
    ) -> int:
        """The profile of a pod, made if it is new. row: of the node that it is on; None = it waits"""
        key = self._key(pod, service, run, row)
        known = self._profile_of.get(key)
        if known is not None:
            if known in self._idle:
                del self._idle[known]
                self._idle[known] = None
            return known
        if len(self._idle) >= _MOST_IDLE_PROFILES:
            return self._give_row_to(key, replicas)
        profile = self._add_profiles([key], np.array([replicas]))
        self._idle[profile] = None
        return profile

    def known_profile(
        self, pod: PodInfo, service: ServiceKey, run: Run | None = None, row: int | None = None
    ) -> int | None:
        """The profile of a pod if there is one already."""
        return self._profile_of.get(self._key(pod, service, run, row))

    def add_services(self, services: Sequence[ServiceKey], replicas: Mapping[ServiceKey, float]) -> None:
        """Make the profiles of many services at once, which is much faster than one by one; their pods follow."""
        # Pods of one-off owners run for a while: each gets a profile of its own hours.
        wanted = (one for one in services if self.profiles.knows(one) and not self.profiles.is_expected(one))
        new = [key for key in map(ProfileKey, wanted) if key not in self._profile_of]
        if new:
            self._add_profiles(new, np.array([replicas[key.service] for key in new if key.service is not None]))

    def set_replicas(self, service: ServiceKey, replicas: float) -> None:
        """Set how many pods share the work of the service; a pod of a run has work of its own."""
        for key in (ProfileKey(service), *self._declaring.get(service, ())):
            profile = self._profile_of.get(key)
            if profile is None or self._replicas[profile] == replicas:
                continue
            if self.profiles.autoscaled(service):  # its load per pod stays
                self._replicas[profile] = replicas
                continue
            curve, today = self._curves([key], np.array([replicas]))
            for node, pods in self._present[profile].items():
                self._pods_today[node] += pods * (today[0] - self._today[profile])
            self.load.set_profile(profile, curve[0])
            self._replicas[profile], self._today[profile] = replicas, today[0]  # memory is what it was

    def set_soft_load(self, load: AnyFloats | None) -> None:
        """Set the room kept on nodes in addition to pods and base: (n_nodes, n_resources, n_slots) base units; None =
        none.
        """
        if load is not None or self._has_soft_load:
            n = self.load.n_nodes
            shape = (n, len(RESOURCES), self.horizon.n_slots)
            self.load.set_soft_load(np.zeros(shape, dtype=np.float32) if load is None else grown(load, n)[:n])
            self._has_soft_load = load is not None

    # Time

    def set_slot(self, slot: int) -> None:
        """Another half hour of the same day is under way."""
        self.horizon = replace(self.horizon, slot=slot)
        self._extend_runs()
        self.load.set_weights(self.horizon.weights())

    # What is asked

    @property
    def believes(self) -> bool:
        """Whether any pod counts on another node than the one it sits on."""
        return bool(self._moved)

    def pods_sitting_on(self, row: int) -> dict[int, float]:
        """Pods of each profile that count and sit on a node; `load.pods_on` has those that are believed there."""
        pods = self.load.pods_on(row)
        for profile, moved in self._moved.get(row, {}).items():
            pods[profile] = pods.get(profile, 0.0) + moved
        return {profile: n for profile, n in pods.items() if n}

    @property
    def capacity(self) -> Floats:
        """(n_nodes, n_resources) NaN = not a limit."""
        return self._capacity[: self.load.n_nodes]

    @property
    def capacity_assumed(self) -> Bools:
        """(n_nodes, n_resources) whether the trainer assumed the capacity."""
        return self._assumed[: self.load.n_nodes]

    @property
    def qos_memory(self) -> Floats:
        """(n_nodes, 3) bytes predicted at the peak of the pods of each QoS class."""
        return self._qos_memory[: self.load.n_nodes]

    def base_now(self) -> Floats:
        """Return the expected load besides pods in this half hour: (n_nodes, n_resources)."""
        return self._base_today[: self.load.n_nodes, :, self.horizon.slot].astype(np.float64)

    def pods_now(self) -> Floats:
        """Expected load of the pods in this half hour: (n_nodes, n_resources)."""
        return self._pods_today[: self.load.n_nodes, :, self.horizon.slot].copy()

    def expected_at(self, position: AnyFloats) -> Floats:
        """Expected load of base and pods at points of today: (n_nodes, n_resources).

        A half hour's figure is its mean; between the middles of two the load is taken to go over evenly. Compared with
        the step at the full half hour, every measurement around it would look like an error.

        position : (n_nodes,) in half hours since midnight; NaN = now
        """
        rows = np.arange(self.load.n_nodes)
        slot, part = between_slots(np.where(np.isfinite(position), position, self.horizon.slot + 0.5))
        expected = [self._base_today[rows, :, s] + self._pods_today[rows, :, s] for s in (slot, slot + 1)]
        return np.asarray((1 - part)[:, None] * expected[0] + part[:, None] * expected[1])

    def use_at(self, profile: int, position: float) -> Floats:
        """The same of one pod, without base: (n_resources,)."""
        if not np.isfinite(position):
            return self.use_now(profile)
        slots, parts = between_slots(np.array([position]))
        slot, part = int(slots[0]), float(parts[0])
        today = self._today[profile]
        return np.asarray((1 - part) * today[:, slot] + part * today[:, slot + 1], dtype=np.float64)

    def use_now(self, profile: int) -> Floats:
        """Expected load of one pod in this half hour: (n_resources,)."""
        return self._today[profile, :, self.horizon.slot].astype(np.float64)

    def memory_peak(self, profile: int) -> float:
        """Bytes one pod is predicted to use at its peak."""
        return self._memory_peak[profile]

    def replicas_used(self, profile: int) -> float:
        """The replica count its curve was made for."""
        return self._replicas[profile]

    def sums(self) -> Sums:
        """Copies of everything but the curves."""
        return Sums(
            now=self._pods_today[:, :, self.horizon.slot].copy(),
            qos_memory=self._qos_memory.copy(),
            unknown_pods=self.unknown_pods,
            use_now=self._today[: len(self.keys), :, self.horizon.slot].astype(np.float64),
            memory_peak=np.array(self._memory_peak),
            known=np.array([key.service is not None for key in self.keys], dtype=bool),
        )

    def name_of(self, row: int) -> str:
        """Return the name of the node in a row; empty = unknown."""
        return self._names.get(row, "")

    # Inside

    def _key(self, pod: PodInfo, service: ServiceKey, run: Run | None, row: int | None) -> ProfileKey:
        hours = None if run is None else half_hours(run, self.horizon)
        return self.profiles.key_of(pod, service, hours, self.bounds.of(row))

    def _place(self, uid: str, placed: PlacedPod) -> None:
        before = self.placed.get(uid)
        if before == placed:
            return
        if before is not None:
            self._count(before, -1)
        self.placed[uid] = placed
        self._count(placed, +1)

    def _give_row_to(self, key: ProfileKey, replicas: float) -> int:
        """Replace the profile that was unused for longest with a new one."""
        profile = next(iter(self._idle))
        self._unlist(profile)
        del self._idle[profile]
        curve, today = self._curves([key], np.array([replicas]))
        self.load.set_profile(profile, curve[0])
        self._today[profile], self._replicas[profile] = today[0], replicas
        self._memory_peak[profile] = float(curve[0, MEMORY].max())
        self.keys[profile] = key
        self._list(key, profile)
        self._idle[profile] = None
        return profile

    def _list(self, key: ProfileKey, profile: int) -> None:
        self._profile_of[key] = profile
        if key.service is not None and key.run is None and key.declared:
            self._declaring.setdefault(key.service, {})[key] = None

    def _unlist(self, profile: int) -> None:
        key = self.keys[profile]
        if self._profile_of.get(key) != profile:
            return
        del self._profile_of[key]
        if key.service in self._declaring:
            self._declaring[key.service].pop(key, None)
            if not self._declaring[key.service]:
                del self._declaring[key.service]

    def _extend_runs(self) -> None:
        """Pods that are there run at least until the half hour under way is over, whatever was expected."""
        end = under_way(self.horizon) + 1
        for profile, key in enumerate(self.keys):
            if key.run is not None and key.run.end < end and self._users[profile]:
                self._unlist(profile)
                self.keys[profile] = key = replace(key, run=RunHours(key.run.first, end))
                self._profile_of.setdefault(key, profile)  # there may be one that was expected to end then
                self.load.set_profile(profile, self.profiles.run_curve(key, self.horizon.days))

    def _count(self, placed: PlacedPod, sign: int) -> None:
        row = placed.counts_on
        self._ensure(max(placed.node, row))
        users = self._users[placed.profile] = self._users[placed.profile] + sign
        if users:
            self._idle.pop(placed.profile, None)
        else:
            self._idle[placed.profile] = None
        if self.keys[placed.profile].service is None and placed.weight:
            self.unknown_pods += sign
        if placed.present:
            present = self._present[placed.profile]
            present[placed.node] = present.get(placed.node, 0) + sign
            if not present[placed.node]:
                del present[placed.node]
            self._pods_today[placed.node] += sign * self._today[placed.profile]
        if not placed.weight:
            return
        pods = sign * placed.weight
        self.load.add(placed.profile, row, pods)
        if placed.shadow is not None:
            self._move(placed.profile, placed.node, pods)
            self._move(placed.profile, row, -pods)
        if self.load.pods_on(row):
            self._qos_memory[row, placed.qos] += pods * self._memory_peak[placed.profile]
        else:
            self._qos_memory[row] = 0.0  # an empty node carries no rounding errors on

    def _move(self, profile: int, row: int, pods: float) -> None:
        moved = self._moved.setdefault(row, {})
        moved[profile] = moved.get(profile, 0.0) + pods
        if not moved[profile]:
            del moved[profile]
        if not moved:
            del self._moved[row]

    def _add_profiles(self, keys: Sequence[ProfileKey], replicas: Floats) -> int:
        """Returns the number of the first."""
        first = len(self.keys)
        curves, today = self._curves(keys, replicas)
        self._today = grown(self._today, first + len(keys))
        self._today[first : first + len(keys)] = today
        for position, key in enumerate(keys):
            self._list(key, self.load.add_profile(curves[position]))
            self.keys.append(key)
            self._replicas.append(float(replicas[position]))
            self._present.append({})
            self._users.append(0)
            self._memory_peak.append(float(curves[position, MEMORY].max()))
        return first

    def _curves(self, keys: Sequence[ProfileKey], replicas: Floats) -> tuple[Floats32, Floats32]:
        """What placement weighs over the horizon, and what is expected today while it is there, of one pod."""
        days = self.horizon.days
        if keys[0].run is not None:
            (key,) = keys
            # What is there now uses as much, whenever it is looked at: its use after it has gone is not asked for.
            now = np.broadcast_to(self.profiles.run_level(key)[:, None], (len(RESOURCES), SLOTS_PER_DAY))
            return self.profiles.run_curve(key, days)[None], now[None].astype(np.float32)
        services = [key.service for key in keys if key.service is not None]
        if services:
            curves = self.profiles.placement(services, replicas, days)
            today = self.profiles.mean(services, replicas, days[:1])
        else:
            (key,) = keys
            curves = self.profiles.placement_of_requests(key, days)[None]
            today = self.profiles.mean_of_requests(key, days[:1])[None]
        for position, key in enumerate(keys):
            self.profiles.with_declared(key, curves[position], days)
            self.profiles.with_declared(key, today[position], days[:1])
        return curves, today

    def _ensure(self, row: int) -> None:
        n = row + 1
        self._capacity = grown(self._capacity, n, fill=np.nan)
        self._assumed = grown(self._assumed, n, fill=False)
        self._base_today, self._pods_today = grown(self._base_today, n), grown(self._pods_today, n)
        self._qos_memory = grown(self._qos_memory, n)
