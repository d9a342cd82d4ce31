"""The kubelet's topology manager, CPU manager and device manager, written plainly over CPUs by id: the reference.

pkg/kubelet/cm of Kubernetes 1.37: topologymanager/policy*.go, cpumanager/policy_static.go, cpu_assignment.go. Each zone
is a socket unless `sockets` says otherwise; other resources than CPUs are devices, of which each zone has some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from placement.topology.node_zones import Scope, TopologyManagerPolicy

Hint = tuple[frozenset[int] | None, bool]
"""Zones, None = any; and whether it is preferred."""


class Rejected(Exception):
    """TopologyAffinityError or SMTAlignmentError."""


@dataclass(frozen=True, slots=True, order=True)
class Cpu:
    zone: int
    core: int
    thread: int


@dataclass
class SlowKubelet:
    """
    free       : CPUs that no pod has of its own, reserved ones left out
    every      : all CPUs
    devices    : left by zone and resource; all of them
    """

    every: frozenset[Cpu]
    free: set[Cpu]
    devices: list[dict[str, int]]
    all_devices: Sequence[Mapping[str, int]]
    policy: TopologyManagerPolicy = TopologyManagerPolicy.SINGLE_NUMA_NODE
    scope: Scope = Scope.POD
    full_cores: bool = False
    by_socket: bool = False
    sockets: Sequence[int] = ()
    reserved: frozenset[Cpu] = field(default_factory=frozenset)

    @property
    def zones(self) -> list[int]:
        return sorted({cpu.zone for cpu in self.every})

    @property
    def threads(self) -> int:
        return len({cpu.thread for cpu in self.every})

    def admit(self, starting: Sequence[Mapping[str, int]], running: Sequence[Mapping[str, int]]) -> None:
        """A pod whose containers ask for whole CPUs ("cpu") and devices. Raises Rejected; then nothing has changed."""
        before = set(self.free), [dict(of) for of in self.devices]
        try:
            self._admit(starting, running)
        except Rejected:
            self.free, self.devices = before
            raise

    def _admit(self, starting: Sequence[Mapping[str, int]], running: Sequence[Mapping[str, int]]) -> None:
        kinds = {kind for one in (*starting, *running) for kind in one}
        whole = {
            kind: max([sum(one.get(kind, 0) for one in running), *(one.get(kind, 0) for one in starting)])
            for kind in kinds
        }
        reusable: set[Cpu] = set()
        lent: list[dict[str, int]] = [{} for _ in self.zones]
        hint = self._merged(whole, reusable, lent) if self.scope is Scope.POD else None
        for number, one in enumerate((*starting, *running)):
            affinity = hint if self.scope is Scope.POD else self._merged(one, reusable, lent)
            taken = self._allocate(one.get("cpu", 0), affinity, reusable)
            if number < len(starting):
                reusable |= taken
            else:
                reusable -= taken
            for kind, amount in one.items():
                if kind != "cpu":
                    self._take_devices(kind, amount, affinity, lent, keeps=number >= len(starting))

    # Hints

    def _merged(
        self, asked: Mapping[str, int], reusable: set[Cpu], lent: list[dict[str, int]]
    ) -> frozenset[int] | None:
        """Zones of the best hint, None = any. Raises Rejected."""
        by_kind: list[list[Hint]] = []
        for kind, amount in asked.items():
            if amount:
                hints = self._cpu_hints(amount, reusable) if kind == "cpu" else self._device_hints(kind, amount, lent)
                by_kind.append(hints or [(None, False)])
        if self.policy is TopologyManagerPolicy.NONE:
            return None
        if self.policy is TopologyManagerPolicy.SINGLE_NUMA_NODE:
            by_kind = [[one for one in of if one[1] and (one[0] is None or len(one[0]) == 1)] for of in by_kind]
        everything = frozenset(self.zones)
        best: Hint | None = None
        narrowest = [min((len(one[0]) for one in of if one[0]), default=0) for of in by_kind]
        for permutation in product(*by_kind):
            masks = [one[0] for one in permutation if one[0] is not None]
            preferred = all(one[1] for one in permutation) and len(set(masks)) <= 1
            merged = everything.intersection(*masks)
            best = _better(best, (merged, preferred), max(narrowest, default=0))
        mask, preferred = best or (everything, False)
        if not preferred and self.policy in (TopologyManagerPolicy.SINGLE_NUMA_NODE, TopologyManagerPolicy.RESTRICTED):
            raise Rejected("TopologyAffinityError")
        return mask

    def _cpu_hints(self, request: int, reusable: set[Cpu]) -> list[Hint]:
        least, found = len(self.zones), []
        for mask in self._masks():
            if sum(cpu.zone in mask for cpu in self.every) >= request:
                least = min(least, len(mask))
            if any(cpu.zone not in mask for cpu in reusable):
                continue
            if sum(cpu.zone in mask for cpu in self.free | reusable) >= request:
                found.append(mask)
        return [(mask, len(mask) == least or self._is_socket_aligned(mask, least)) for mask in found]

    def _is_socket_aligned(self, mask: frozenset[int], least: int) -> bool:
        if not self.by_socket:
            return False
        per_socket = len(self.zones) // len(set(self.sockets))
        return per_socket > 0 and len({self.sockets[zone] for zone in mask}) == -(-least // per_socket)

    def _device_hints(self, kind: str, request: int, lent: list[dict[str, int]]) -> list[Hint]:
        having = [zone for zone in self.zones if self.all_devices[zone].get(kind)]
        least, found = len(having or self.zones), []
        for mask in self._masks(having or self.zones):
            if sum(self.all_devices[zone].get(kind, 0) for zone in mask) >= request:
                least = min(least, len(mask))
            if any(of.get(kind, 0) and zone not in mask for zone, of in enumerate(lent)):
                continue
            if sum(self.devices[zone].get(kind, 0) + lent[zone].get(kind, 0) for zone in mask) >= request:
                found.append(mask)
        return [(mask, len(mask) == least) for mask in found]

    def _masks(self, zones: Sequence[int] | None = None) -> Iterator[frozenset[int]]:
        zones = self.zones if zones is None else zones
        for size in range(1, len(zones) + 1):
            yield from map(frozenset, combinations(zones, size))

    # Allocation

    def _take_devices(
        self, kind: str, amount: int, affinity: frozenset[int] | None, lent: list[dict[str, int]], *, keeps: bool
    ) -> None:
        inside = [zone for zone in self.zones if affinity is None or zone in affinity]
        rest = amount
        for zone in (*inside, *(zone for zone in self.zones if zone not in inside)):
            again = min(lent[zone].get(kind, 0), rest)
            fresh = min(self.devices[zone].get(kind, 0), rest - again)
            rest -= again + fresh
            self.devices[zone][kind] = self.devices[zone].get(kind, 0) - fresh
            if keeps:
                lent[zone][kind] = lent[zone].get(kind, 0) - again
            else:
                lent[zone][kind] = lent[zone].get(kind, 0) + fresh
        if rest:
            raise Rejected("UnexpectedAdmissionError")

    def _allocate(self, request: int, affinity: frozenset[int] | None, reusable: set[Cpu]) -> set[Cpu]:
        if not request:
            return set()
        if self.full_cores:
            if request % self.threads:
                raise Rejected("SMTAlignmentError: no multiple")
            held = {(cpu.zone, cpu.core) for cpu in self.reserved}
            if request > sum((cpu.zone, cpu.core) not in held for cpu in self.free):
                raise Rejected("SMTAlignmentError: not enough free physical CPUs")
        free = self.free | reusable
        taken: set[Cpu] = set()
        if affinity is not None:
            near = affinity
            if self.by_socket:
                near = frozenset(z for z in self.zones if self.sockets[z] in {self.sockets[one] for one in affinity})
            aligned = {cpu for cpu in free if cpu.zone in near}
            taken = self._packed(aligned, min(request, len(aligned)))
        taken |= self._packed(free - taken, request - len(taken))
        self.free -= taken
        return taken

    def _packed(self, free: Iterable[Cpu], request: int) -> set[Cpu]:
        """takeByTopologyNUMAPacked."""
        left, taken = set(free), set[Cpu]()
        if request > len(left):
            raise Rejected("not enough cpus available to satisfy request")
        for size_of in (self._of_zone, self._of_core):
            for group in self._sorted_groups(left, size_of):
                if len(group) == len(size_of(group[0], self.every)) <= request - len(taken):
                    taken |= set(group)
                    left -= set(group)
        while len(taken) < request:
            taken.add(one := self._sorted_groups(left, self._of_core)[0][0])
            left.discard(one)
        return taken

    @staticmethod
    def _of_zone(cpu: Cpu, of: Iterable[Cpu]) -> list[Cpu]:
        return sorted(one for one in of if one.zone == cpu.zone)

    @staticmethod
    def _of_core(cpu: Cpu, of: Iterable[Cpu]) -> list[Cpu]:
        return sorted(one for one in of if (one.zone, one.core) == (cpu.zone, cpu.core))

    def _sorted_groups(self, left: set[Cpu], of: object) -> list[list[Cpu]]:
        """Those with the fewest free CPUs first; cores within zones that are sorted like that."""
        assert callable(of)
        groups = {tuple(of(cpu, left)) for cpu in left}
        return [
            list(group)
            for group in sorted(groups, key=lambda g: (len(self._of_zone(g[0], left)), g[0].zone, len(g), g[0]))
        ]


def _better(best: Hint | None, new: Hint, most: int) -> Hint | None:
    """HintMerger.compare; most: bestNonPreferredAffinityCount."""
    assert new[0] is not None
    if not new[0]:
        return best
    if best is None:
        return new
    if best[1] != new[1]:
        return new if new[1] else best
    assert best[0] is not None
    now, then = len(best[0]), len(new[0])
    if best[1] or now > most:
        return _narrower(best, new)
    if now == most:
        return _narrower(best, new) if then == most else best
    if then > most or then < now:
        return best
    return new if then > now else _narrower(best, new)


def _narrower(best: Hint, new: Hint) -> Hint:
    def key(hint: Hint) -> tuple[int, int]:
        return len(hint[0] or ()), sum(1 << zone for zone in hint[0] or ())

    return new if key(new) < key(best) else best
