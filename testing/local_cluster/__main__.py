"""`make cluster`: a cluster to try forecast-scheduler on, without containers. Runs until Ctrl-C.

python -m testing.local_cluster [--directory local-cluster] [--days 10] [--store prometheus] [--second]

docs/start/getting-started.md says what to do with it.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from testing.local_cluster.directory import own_directory
from testing.local_cluster.running import ADDED_PODS, CLUSTERS, LocalCluster, Ports
from testing.local_cluster.stores import Store
from testing.servers.control_plane.binaries import binary
from testing.servers.kubectl.binary import kubectl
from testing.servers.prometheus import promtool


def main() -> int:
    """Exit status: 0 after Ctrl-C or SIGTERM, 2 where it cannot begin."""
    parser = argparse.ArgumentParser(prog="make cluster", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--directory", type=Path, default=Path("local-cluster"), help="for everything that it writes")
    parser.add_argument("--days", type=int, default=10, help="of history in Prometheus, 7 to 30")
    stores = [store.value for store in Store]
    parser.add_argument("--store", choices=stores, default=stores[0], help="token: a Prometheus that asks for one")
    parser.add_argument(
        "--second", action="store_true", help=f"a second, smaller cluster behind the same store: contexts {CLUSTERS}"
    )
    asked = parser.parse_args()
    if not 7 <= asked.days <= 30:
        parser.error(f"--days is {asked.days}: the sample has enough for 7 to 30")
    directory: Path = asked.directory.absolute()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        program = _programs()
    except RuntimeError as error:
        print(f"make cluster: {error}", file=sys.stderr)
        return 2
    try:
        with own_directory(directory):
            began, ports = time.monotonic(), Ports().free()
            for sentence in ports.moved():
                _say(sentence)
            store = Store(asked.store)
            what = "Prometheus" if store is Store.PROMETHEUS else f"the store ({store.value})"
            _say(f"starting etcd, kube-apiserver, kube-scheduler and {what} with the sample's history ...")
            with LocalCluster(directory, days=asked.days, ports=ports, store=store, second=asked.second) as cluster:
                _write_environment(directory, cluster, program)
                _say(_welcome(cluster, asked.directory, asked.days, time.monotonic() - began))
                ended.wait()
                _say("ending ...")
    except (FileExistsError, BlockingIOError) as error:
        print(f"make cluster: {error}", file=sys.stderr)
        return 2
    return 0


def _programs() -> Path:
    """All that runs is there, or is built or fetched now; returns kubectl. Raises RuntimeError."""
    found = kubectl()
    for name in ("etcd", "kube-apiserver", "kube-scheduler"):
        binary(name)
    try:
        promtool("--version")
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError("no Prometheus: put prometheus and promtool on PATH or into $PROMETHEUS_BIN") from error
    return found


def _write_environment(directory: Path, cluster: LocalCluster, program: Path) -> None:
    path = f"{Path(sys.executable).parent}:{program.parent}"
    text = "".join(f"export {name}='{value}'\n" for name, value in cluster.environment.items())
    (directory / "env.sh").write_text(f"# For a shell that talks to the local cluster: . env.sh\n{text}"
                                      f"export PATH='{path}':\"$PATH\"\n")  # fmt: skip


def _welcome(cluster: LocalCluster, shown: Path, days: int, seconds: float) -> str:
    manifests = ", ".join(ADDED_PODS)
    contexts = f" with the contexts {', '.join(cluster.clusters)}" if len(cluster.clusters) > 1 else ""
    inside = f", in the cluster the Service {cluster.found_at}" if cluster.found_at else ""
    return f"""
{cluster.n_nodes} nodes with {cluster.n_pods} pods are up after {seconds:.0f} s, and {days} days of their metrics.

  Kubernetes   {shown}/kubeconfig{contexts}
  Prometheus   {cluster.prometheus_url or "none"}{inside}
  extender     kube-scheduler asks {cluster.ports.url("extender")}, where no process listens yet
  webhook      the API server asks {cluster.ports.url("webhook")}: `forecast-scheduler webhook` starts it
  pods to try  {manifests} in {shown}

What comes next is in docs/start/getting-started.md. In every other terminal, first:

  . {shown}/env.sh

The local cluster runs. Ctrl-C ends it."""


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
