"""How long a gang waits for what its tenant has lent, through a real API server.

    python -m benchmarks.tenant_gang [--members 16] [--rounds 5]

Two tenants are guaranteed half of the cores each. One has borrowed them all, in pods of one core; then the other's gang
arrives. Every second round the process of `schedule` is killed with SIGKILL as soon as a victim is on its way out, and
another one takes over. Pods that have to go are gone as soon as that is asked for: there is no kubelet. Settings are
the defaults, so that 10 s of each round are the grace period.

Shown: seconds from the first request that makes a member to the last binding, and how many pods went, of which the gang
needs one for each member. Ends with status 1 if a round takes more than 30 s, or more pods go than the gang needs.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.harness import command_line, finish, machine_load, print_aims, spread
from testing.clusters.elastic_quotas import create_quota, delete_quotas, elastic_quota, install_elastic_quotas
from testing.clusters.own_nodes import (
    LONG,
    bound,
    end_terminating,
    group,
    groups,
    member,
    our_node,
    our_pod,
    settings_of_schedule,
)
from testing.processes.scorer_process import ScorerProcess
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.waiting import eventually

_OWNER, _BORROWER = "default", "borrower"
_MOST_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Returned:
    """seconds: until the gang had its nodes; gone: pods that were evicted for it."""

    seconds: float
    gone: int


def measure(plane: ControlPlane, directory: Path, n_members: int, *, is_killed: bool) -> Returned:
    """One round, from an empty cluster to an empty cluster. Raises TimeoutError."""
    with ExitStack() as stack:
        writer = stack.enter_context(ClusterWriter(plane))
        api = stack.enter_context(Api(plane))
        writer.create_many(our_node(f"node-{at}", cpu=8) for at in range(n_members // 4))
        for tenant in (_OWNER, _BORROWER):
            create_quota(api, elastic_quota(tenant, {"cpu": str(n_members)}))

        def start(name: str) -> ScorerProcess:
            kubeconfig = plane.write_kubeconfig("admin", plane.token)
            return stack.enter_context(
                ScorerProcess(
                    directory / name, "--kubeconfig", kubeconfig, settings=settings_of_schedule(), command="schedule"
                )
            )

        process = start("first")
        n_pods = 2 * n_members
        writer.create_many(our_pod(f"pod-{at}", cpu="1", namespace=_BORROWER) for at in range(n_pods))
        _await(lambda: bound(writer, "pod") == n_pods, process)
        those = stack.enter_context(groups(plane))
        those.create(group("train", members=n_members))
        began = time.perf_counter()
        writer.create_many(member("train", number) for number in range(n_members))
        if is_killed:
            _await(lambda: any("deletionTimestamp" in one["metadata"] for one in writer.list_all("pods")), process)
            process.kill()
            process = start("second")

        def is_placed() -> bool:
            end_terminating(writer)
            return bound(writer, "train") == n_members

        _await(is_placed, process)
        seconds = time.perf_counter() - began
        gone = n_pods - bound(writer, "pod")
        delete_quotas(api, _OWNER, _BORROWER)
        for plural in ("pods", "nodes"):
            writer.delete_many(writer.list_all(plural))
        end_terminating(writer)
        those.delete_all()
    return Returned(seconds, gone)


def _await(condition: Callable[[], bool], process: ScorerProcess) -> None:
    if not eventually(condition, LONG):
        raise TimeoutError(process.log[-3000:])


def main() -> None:
    """Measure all rounds and print how long the gang waited."""
    parser = command_line(__doc__)
    parser.add_argument("--members", type=int, default=16, help="a multiple of 4")
    parser.add_argument("--rounds", type=int, default=5, help="of each kind")
    options = parser.parse_args()
    found: dict[str, list[Returned]] = {"undisturbed": [], "killed": []}
    with tempfile.TemporaryDirectory() as directory, control_plane() as plane:
        with Api(plane) as api, ClusterWriter(plane) as writer:
            for path, manifest in shipped("crds/podgroups/podgroups.yaml"):
                api.request("POST", path, manifest)
            install_elastic_quotas(api)
            for name in ("forecast-scheduler", _BORROWER):
                writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for number in range(options.rounds):
            for kind, rounds in found.items():
                place = Path(directory) / f"{kind}-{number}"
                rounds.append(measure(plane, place, options.members, is_killed=kind == "killed"))
    print(f"a gang of {options.members}, {options.rounds} rounds: seconds until it is placed, pods that went for it")
    for kind, rounds in found.items():
        seconds = [one.seconds for one in rounds]
        gone = sorted({one.gone for one in rounds})
        print(f"  {kind:12} {median(seconds):6.1f} {spread(seconds, 1):>16}   {gone}")
    print(machine_load())
    every = [one for rounds in found.values() for one in rounds]
    finish(
        print_aims(
            [
                (f"placed within {_MOST_SECONDS:g} s", all(one.seconds <= _MOST_SECONDS for one in every)),
                ("no more pods go than the gang needs", all(one.gone == options.members for one in every)),
            ]
        )
    )


if __name__ == "__main__":
    main()
