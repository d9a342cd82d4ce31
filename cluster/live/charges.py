"""Where the metrics lag behind the pods: pods that no metric has seen for a whole window yet, and pods that have
left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from base.arrays import AnyFloats, Floats
from cluster.predicted.array_rows import add_to_rows, grown
from kube.objects.bulk_records import bulk_records


@dataclass(frozen=True, slots=True)
class _Charge:
    """started: unix seconds, None = not yet; left: share still charged."""

    node: int
    amount: Floats
    started: float | None
    left: float


class Charges:
    """Sums per node are kept up to date charge by charge. Nodes are rows of the cluster state."""

    def __init__(self, n_resources: int, *, window_seconds: float, grace_seconds: float) -> None:
        """
        window_seconds : over which the source averages usage
        grace_seconds  : time after its window from which a pod counts as seen, measured or not
        """
        self._window, self._grace = window_seconds, grace_seconds
        self._charges: dict[str, _Charge] = {}
        self._seen: dict[str, int] = {}  # node where it was seen
        self._total = np.zeros((0, n_resources))
        self._n_on = np.zeros(0, dtype=np.int64)
        self._highest = np.full(n_resources, 1e-9)  # that any sum has been: rounding errors are of its size

    def __len__(self) -> int:
        """Pods that are charged, wholly or in part."""
        return len(self._charges)

    def total(self, n_nodes: int) -> Floats:
        """Charges of each node: (n_nodes, n_resources)."""
        self._ensure(n_nodes)
        return self._total[:n_nodes].copy()

    def left(self, uid: str) -> float:
        """Share of a pod's virtual request that is still charged; 0 = seen, or not known."""
        charge = self._charges.get(uid)
        return 0.0 if charge is None else charge.left

    def open(self) -> dict[str, tuple[int, float]]:
        """Node and share left of every charge."""
        return {uid: (charge.node, charge.left) for uid, charge in self._charges.items()}

    def knows(self, uid: str, node: int, started: float | None) -> bool:
        """Whether charging the pod again would change nothing."""
        charge = self._charges.get(uid)
        if charge is None:
            return self._seen.get(uid) == node
        return charge.node == node and (charge.started is not None or started is None)

    def charge(self, uid: str, node: int, amount: AnyFloats, started: float | None, now: float) -> None:
        """A pod is on a node. Said again it changes only what is new: its start, or another node."""
        if self.knows(uid, node, started):
            return
        if self.start(uid, node, started):
            return
        self.release(uid)
        if started is not None and now - started > self._window + self._grace:
            self._seen[uid] = node  # it has run for long: the measurement of the node includes it
            return
        self._put(uid, _Charge(node, np.asarray(amount, dtype=np.float64), started, 1.0))

    def start(self, uid: str, node: int, started: float | None) -> bool:
        """Whether a pod is charged on the node already; when it started, which alone is new then, is noted."""
        before = self._charges.get(uid)
        if before is None or before.node != node:
            return False
        self._charges[uid] = replace(before, started=started)
        return True

    def charge_all(self, uids: Sequence[str], nodes: Sequence[int], amount: AnyFloats) -> None:
        """Pods of which none is known here, and which have not started, are on nodes: each is charged the same."""
        amount = np.asarray(amount, dtype=np.float64)
        rows = np.array(nodes, dtype=np.int64)
        self._ensure(int(rows.max(initial=-1)) + 1)
        charges = bulk_records(
            _Charge, len(uids), node=nodes, amount=repeat(amount), started=repeat(None), left=repeat(1.0)
        )
        self._charges.update(zip(uids, charges, strict=True))
        add_to_rows(self._total, rows, amount)
        np.add.at(self._n_on, rows, 1)
        np.maximum(self._highest, self._total.max(axis=0, initial=0.0), out=self._highest)

    def reprice(self, uid: str, amount: AnyFloats) -> None:
        """Another model takes the pod to use something else; nothing if it is not charged."""
        charge = self._charges.get(uid)
        if charge is not None:
            self._put(uid, replace(charge, amount=np.asarray(amount, dtype=np.float64)))

    def release(self, uid: str) -> None:
        """The pod is gone; harmless if it was never charged."""
        self._seen.pop(uid, None)
        self._take(uid)

    def measured(self, sampled: AnyFloats) -> None:
        """Nodes were measured again: what the samples cover is no longer charged.

        sampled : (n_nodes,) unix seconds of each node's last sample; NaN = it was not measured
        """
        for uid, charge in list(self._charges.items()):
            if charge.started is None or charge.node >= len(sampled):
                continue
            covered = (sampled[charge.node] - charge.started) / self._window
            if not covered > 1 - charge.left:  # coverage only grows; NaN = not measured
                continue
            if covered >= 1:
                self._take(uid)
                self._seen[uid] = charge.node
            else:
                self._put(uid, replace(charge, left=float(1 - covered)))

    def expire(self, now: float) -> None:
        """Drop charges of pods that run far longer than the window."""
        for uid, charge in list(self._charges.items()):
            if charge.started is not None and now - charge.started > self._window + self._grace:
                self._take(uid)
                self._seen[uid] = charge.node

    def drift(self) -> float:
        """Largest difference between the sums and the charges they are made of, as a share of the largest sum so far.

        Not of what is left: of a million that was charged and released, 1e-10 may stay.
        """
        total = np.zeros_like(self._total)
        for charge in self._charges.values():
            total[charge.node] += charge.left * charge.amount
        return float((np.abs(total - self._total) / self._highest).max(initial=0.0))

    def _put(self, uid: str, charge: _Charge) -> None:
        self._take(uid)
        self._ensure(charge.node + 1)
        self._charges[uid] = charge
        self._total[charge.node] += charge.left * charge.amount
        np.maximum(self._highest, self._total[charge.node], out=self._highest)
        self._n_on[charge.node] += 1

    def _take(self, uid: str) -> None:
        charge = self._charges.pop(uid, None)
        if charge is None:
            return
        self._n_on[charge.node] -= 1
        if self._n_on[charge.node]:
            self._total[charge.node] -= charge.left * charge.amount
        else:
            self._total[charge.node] = 0.0  # no rounding errors are left behind

    def _ensure(self, n_nodes: int) -> None:
        self._total, self._n_on = grown(self._total, n_nodes), grown(self._n_on, n_nodes)


# Pods that have left, as long as the window of the metrics still holds some of their usage.
#
# Without them what they used until a minute ago would look like an error of the forecast on their old nodes, and keep
# the pods of the very rollout that replaces them away.


@dataclass(frozen=True, slots=True)
class _Pod:
    node: int
    use: Floats
    started: float
    at: float


class Departed:
    """A queue in the order of departure."""

    def __init__(self, window_seconds: float) -> None:
        self._window = window_seconds
        self._pods: deque[_Pod] = deque()

    def add(self, node: int, use: AnyFloats, started: float, at: float) -> None:
        """A pod that ran from `started` to `at` (unix seconds) left its node. use: (n_resources,) expected of it."""
        self._pods.append(_Pod(node, np.asarray(use, dtype=np.float64), started, at))

    def in_metrics(self, sampled: AnyFloats, n_resources: int) -> Floats:
        """Expected usage of departed pods that samples still hold: (n_nodes, n_resources).

        sampled : (n_nodes,) unix seconds of each node's last sample
        """
        held = np.zeros((len(sampled), n_resources))
        for pod in self._pods:
            if pod.node < len(sampled):
                end, begin = min(sampled[pod.node], pod.at), max(sampled[pod.node] - self._window, pod.started)
                if end > begin:  # NaN = not measured
                    held[pod.node] += (end - begin) / self._window * pod.use
        return held

    def forget(self, now: float) -> None:
        """Drop pods that no sample holds any more."""
        while self._pods and abs(now - self._pods[0].at) > 2 * self._window:  # the clock may have been set back
            self._pods.popleft()
