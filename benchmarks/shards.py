"""Several replicas of `schedule` that share the nodes, beside one, on a real API server: what a pod costs, and trouble.

    python -m benchmarks.shards [--nodes 5000] [--pods 2000] [--rounds 3] [--replicas 1,2,3] [--no-trouble]

Cost: pods of 200 services are created while the replicas place them. One replica runs without shards. CPU is in
milliseconds per pod of all replicas together, from the first pod's creation to the last binding; pods/s is that from
the first to the last binding, with the creator, the API server and etcd on the same cores. A round measures every
number of replicas once, the next round in the opposite order.

Trouble: a burst of `--pods` pods, and gangs of 16 among them, fills nodes of four cores nearly to the last bit, while
one of two or three replicas is killed (SIGKILL), paused (SIGSTOP), or cut off from the API server, or has a clock that
is an hour ahead. Counted at the end from the API objects alone: nodes on which more is requested than there is, pods
without a node, gangs that are placed in part. Ends with status 1 where a limit does not hold.
"""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.harness import command_line, finish, in_turn, machine_load, numbers, outcome, spread
from benchmarks.schedule_process import OUR_NAME
from benchmarks.scheduler_load import LoadedCluster
from testing.clusters.own_nodes import group, groups, member, our_node, our_pod, overcommitted
from testing.processes.process_figures import cpu_of, wait_until_at_rest
from testing.processes.scorer_process import ScorerProcess
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.servers.own_clock import HOUR, OwnClock
from testing.waiting import eventually

_SERVICES: Final = 200
_LONGEST: Final = 300.0
_SHARDS: Final[dict[str, Any]] = {"enabled": True, "count": 16}
_MOST_COST: Final = 1.15
_GANG: Final = 16
_PER_NODE: Final = 40
"""Pods of 100 millicores that fill a node of four cores."""


@dataclass(frozen=True, slots=True)
class Cost:
    """rate: pods/s; cpu: ms per pod, of all replicas."""

    rate: float
    cpu: float


@contextmanager
def replicas_of(
    plane: ControlPlane,
    directory: Path,
    n: int,
    *,
    options: Sequence[Any] = (),
    schedule: dict[str, Any] | None = None,
    urls: Sequence[str] = (),
    environments: Sequence[Mapping[str, str] | None] = (),
) -> Iterator[list[ScorerProcess]]:
    """Replicas that own all shards, or one that places on all nodes."""
    settings = {"scorer": {"node_metrics": False, "service_metrics": False}, "schedule": dict(schedule or {})}
    if n > 1:
        settings["schedule"] |= {"shards": _SHARDS}
    with ExitStack() as stack:
        processes = []
        for number in range(n):
            url = urls[number] if number < len(urls) else ""
            kubeconfig = plane.write_kubeconfig(f"replica-{number}", plane.token, url=url)
            process = ScorerProcess(
                directory / f"replica-{number}",
                *("--kubeconfig", kubeconfig, *options),
                settings=settings,
                command="schedule",
                ready=False,
                environment=environments[number] if number < len(environments) else None,
            )
            processes.append(stack.enter_context(process))
        for process in processes:
            process.wait_ready(_LONGEST)
        if n > 1:
            wait_until_shared(processes)
        yield processes


def wait_until_shared(processes: Sequence[ScorerProcess]) -> None:
    """Every replica owns a shard, and none is free. Raises TimeoutError."""

    def are_shared() -> bool:
        owned = [one.metric("forecast_shards_owned") for one in processes]
        return min(owned) > 0 and sum(owned) == _SHARDS["count"]

    if not eventually(are_shared, _LONGEST):
        raise TimeoutError("\n".join(one.log[-2000:] for one in processes))


def cost_of(cluster: LoadedCluster, directory: Path, n: int, name: str, n_pods: int) -> Cost:
    """One batch, created while it is placed; its pods are gone afterwards."""
    options = ("--models", cluster.models, "--domain", "")
    with replicas_of(cluster.plane, directory / name, n, options=options) as processes:
        pids = {str(number): _pid(one) for number, one in enumerate(processes)}
        for pid in pids.values():
            wait_until_at_rest(pid)
        with cluster.bindings(name) as bindings:
            before = cpu_of(pids)
            made = cluster.batch(name, n_pods, n_services=_SERVICES, scheduler_name=OUR_NAME)
            times = bindings.times(n_pods, _LONGEST, lambda: processes[0].log[-3000:])
            after = cpu_of(pids)
    cluster.writer.delete_many(made)
    seconds = sum(after[one] - before[one] for one in pids)
    return Cost((n_pods - 1) / max(times[-1] - times[0], 1e-9), 1000 * seconds / n_pods)


# Trouble


@dataclass(frozen=True, slots=True)
class Left:
    """seconds: from the first pod's creation until all is placed; inf = not all was. The rest are counts at the end."""

    seconds: float
    overcommitted: int
    waiting: int
    broken_gangs: int

    @property
    def is_sound(self) -> bool:
        """Return whether nothing was lost, and nothing placed twice over."""
        return not (self.overcommitted or self.waiting or self.broken_gangs)


def trouble(plane: ControlPlane, directory: Path, n: int, kind: str, n_pods: int) -> Left:
    """A burst during which something happens to the first replica."""
    clock = OwnClock(directory / "clock") if kind == "clock" else None
    n_gangs = n_pods // 10 // _GANG
    with (
        ClusterWriter(plane) as writer,
        groups(plane) as those,
        TcpProxy(plane.api_server.port) as proxy,
        replicas_of(
            plane,
            directory,
            n,
            urls=[proxy.url] if kind == "cut off" else [],
            environments=[None if clock is None else clock.environment],
        ) as processes,
    ):
        if clock is not None:
            clock.set_to(HOUR)
        nodes = writer.create_many(our_node(f"node-{i}") for i in range(n_pods // _PER_NODE + 4))
        for i in range(n_gangs):
            those.create(group(f"gang-{i}", members=_GANG))
        single = n_pods - n_gangs * _GANG
        began = time.monotonic()
        made = writer.create_many(our_pod(f"pod-{i}", cpu="100m") for i in range(single // 2))
        made += writer.create_many(member(f"gang-{g}", i, cpu="100m") for g in range(n_gangs) for i in range(_GANG))
        mend = _begin(kind, processes, proxy)
        made += writer.create_many(our_pod(f"pod-{i}", cpu="100m") for i in range(single // 2, single))
        placed = eventually(lambda: not writer.list_all("pods", field_selector="spec.nodeName="), _LONGEST / 2)
        seconds = time.monotonic() - began
        mend()
        time.sleep(5.0)  # whatever a replica that comes back does wrong, it does now
        pods = writer.list_all("pods")
        waiting = [one for one in pods if not one["spec"].get("nodeName")]
        waiting_gangs = {one["metadata"]["name"].rsplit("-member", 1)[0] for one in waiting if "gang" in str(one)}
        left = Left(
            seconds if placed else float("inf"),
            len(overcommitted(pods, nodes)),
            n_pods - len(pods) + len(waiting),
            len(waiting_gangs),
        )
        writer.delete_many(made)
        writer.delete_many(nodes)
        those.delete_all()
    return left


def _begin(kind: str, processes: Sequence[ScorerProcess], proxy: TcpProxy) -> Callable[[], None]:
    """Begin; returns what ends it."""
    first = processes[0]
    if kind == "killed":
        first.kill()
    elif kind == "paused":
        assert first.process is not None
        first.process.send_signal(signal.SIGSTOP)
        return lambda: first.process.send_signal(signal.SIGCONT)  # type: ignore[union-attr]
    elif kind == "cut off":
        proxy.refuse(True)
        proxy.cut()
        return lambda: proxy.refuse(False)
    return lambda: None


def _pid(process: ScorerProcess) -> int:
    assert process.process is not None
    return process.process.pid


def _prepare(plane: ControlPlane) -> None:
    with Api(plane) as api, ClusterWriter(plane) as writer:
        for path, manifest in shipped("crds/podgroups/podgroups.yaml"):
            api.request("POST", path, manifest)
        writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "forecast-scheduler"}})


def show_cost(found: dict[int, list[Cost]]) -> bool:
    """Print what was measured; returns whether the limit holds."""
    print(f"  {'replicas':12}{'pods/s':>8} {'least to most':>17}{'CPU ms per pod':>16}{'beside one':>12}")
    holds = True
    for n, costs in found.items():
        ratio = median(cost.cpu / one.cpu for cost, one in zip(costs, found[min(found)], strict=True))
        rates = [cost.rate for cost in costs]
        cpu = median(cost.cpu for cost in costs)
        print(f"  {n:<12}{median(rates):8.0f} {spread(rates):>17}{cpu:16.2f}{ratio:12.2f}")
        holds = holds and ratio <= _MOST_COST
    print(f"  at most {_MOST_COST} times the CPU of one is wanted: {outcome(holds)}")
    return holds


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what a pod costs, and what trouble leaves behind."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=2000, help="in a batch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--replicas", default="1,2,3")
    parser.add_argument("--no-cost", action="store_true")
    parser.add_argument("--no-trouble", action="store_true")
    asked = parser.parse_args(arguments)
    holds, counts = True, numbers(asked.replicas)
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        if not asked.no_cost:
            with LoadedCluster(asked.nodes, 4 * asked.nodes, 500, directory) as cluster:
                _prepare(cluster.plane)

                def measure(n: int, number: int) -> Cost:
                    return cost_of(cluster, directory, n, f"r{number}-{n}", asked.pods)

                found = in_turn(counts, asked.rounds, measure)
            print(f"{asked.nodes} nodes, {asked.rounds} rounds of {asked.pods} pods, {machine_load()}")
            holds = show_cost(found) and holds
        if not asked.no_trouble:
            print(
                f"\n  {'trouble':12}{'replicas':>9}{'seconds':>9}{'overcommitted':>15}{'lost':>6}{'broken gangs':>14}"
            )
            with ControlPlane() as plane:
                _prepare(plane)
                for n in [one for one in counts if one > 1]:
                    for kind in ("killed", "paused", "cut off", "clock"):
                        left = trouble(plane, directory / f"{kind}-{n}", n, kind, asked.pods)
                        print(
                            f"  {kind:12}{n:9}{left.seconds:9.1f}{left.overcommitted:15}{left.waiting:6}"
                            f"{left.broken_gangs:14}",
                            flush=True,
                        )
                        holds = holds and left.is_sound
    finish(holds)


if __name__ == "__main__":
    main()
