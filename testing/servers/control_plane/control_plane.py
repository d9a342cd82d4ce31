"""A real etcd and kube-apiserver on loopback ports. Data is throw-away, no process outlives the test.

There is no kubelet, controller manager or scheduler: nodes are what testing/servers/cluster_objects.py writes, pods
stay where they are bound and their status is what a test patches.
"""

from __future__ import annotations

import json
import secrets
import shutil
import ssl
import tempfile
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from testing.servers.bad_proxy import self_signed
from testing.servers.control_plane.binaries import binary
from testing.servers.control_plane.process import ServerProcess
from testing.servers.prometheus import free_port
from testing.timings import timed

_START_SECONDS = 60


class Etcd:
    """One member without fsync."""

    def __init__(self, directory: Path) -> None:
        self.url, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self._data = directory / "etcd"
        self._process = ServerProcess(
            [
                str(binary("etcd")),
                f"--data-dir={self._data}",
                f"--listen-client-urls={self.url}",
                f"--advertise-client-urls={self.url}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--unsafe-no-fsync",
                "--log-level=error",
            ],
            directory / "etcd.log",
        )

    def start(self) -> None:
        """Start and wait until it answers."""
        self._process.start(self._ready, _START_SECONDS)

    def kill(self) -> None:
        """End it now."""
        self._process.kill()

    def wipe(self) -> None:
        """Kill it and start it without any data."""
        self.kill()
        shutil.rmtree(self._data)
        self.start()

    def put(self, pairs: Sequence[tuple[str, bytes]]) -> None:
        """Write values under their keys in one transaction, at most 128, past the API server.

        For lists only: all get the same resource version, which the API server never does, so a watch that is resumed
        among them misses some.
        """
        requests = [
            {"request_put": {"key": b64encode(key.encode()).decode(), "value": b64encode(value).decode()}}
            for key, value in pairs
        ]
        self.transaction(requests)

    def transaction(self, operations: Sequence[dict[str, Any]]) -> None:
        """Do these in one transaction, at most 128, past the API server (RequestOp of etcd's KV API)."""
        self._call("kv/txn", {"success": operations})

    def range(self, first: str, end: str, *, keys_only: bool) -> list[dict[str, Any]]:
        """Return the pairs from one key to the one before another, coded as etcd's JSON has them."""
        asked = {"key": b64encode(first.encode()).decode(), "range_end": b64encode(end.encode()).decode()}
        return list(self._call("kv/range", asked | {"keys_only": keys_only}).get("kvs", ()))

    def _ready(self) -> bool:
        try:
            self._call("maintenance/status", {})
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False
        return True

    def _call(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.url}/v3/{method}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return dict(json.load(answer))


class ApiServer:
    """kube-apiserver. Port, certificate and tokens stay the same over stop(), kill() and start()."""

    def __init__(self, directory: Path, etcd_url: str, tokens: Path, arguments: Sequence[str] = ()) -> None:
        """arguments: further flags; of one that is given twice the last counts."""
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.ca_file = self_signed(directory)  # the certificate of the server and of who signed it, with its key
        self._tls = ssl.create_default_context(cafile=str(self.ca_file))
        self._token = tokens.read_text().partition(",")[0]
        self._process = ServerProcess(
            [
                str(binary("kube-apiserver")),
                f"--etcd-servers={etcd_url}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                f"--secure-port={self.port}",
                f"--cert-dir={directory}",
                f"--tls-cert-file={self.ca_file}",
                f"--tls-private-key-file={self.ca_file}",
                f"--service-account-key-file={self.ca_file}",
                f"--service-account-signing-key-file={self.ca_file}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--token-auth-file={tokens}",
                "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.0.0.0/16",
                # No controllers run here: pods need no service account, nodes are ready as soon as they say so.
                "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
                "--endpoint-reconciler-type=none",
                "--enable-priority-and-fairness=false",
                "--max-requests-inflight=3000",
                "--max-mutating-requests-inflight=3000",
                "--profiling=false",
                *arguments,
            ],
            directory / "kube-apiserver.log",
        )

    def start(self, seconds: float = _START_SECONDS) -> None:
        """Start and wait until it serves the namespace `default`; with much in etcd it takes longer."""
        self._process.start(lambda: self._answers("/readyz") and self._answers(_DEFAULT_NAMESPACE), seconds)

    def stop(self) -> None:
        """Let it end its requests, then end."""
        self._process.stop()

    def kill(self) -> None:
        """End it now, as a crash would."""
        self._process.kill()

    def pause(self) -> None:
        """See ServerProcess."""
        self._process.pause()

    def resume(self) -> None:
        """See ServerProcess."""
        self._process.resume()

    def _answers(self, path: str) -> bool:
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self._token}"})
        try:
            with urllib.request.urlopen(request, timeout=5, context=self._tls) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False


class ControlPlane:
    """Context manager: etcd + kube-apiserver, up in a few seconds; several may run side by side.

    token            : of a cluster administrator
    powerless_token  : of a user without any rights
    kubeconfig       : file with address, authority and the administrator's token
    """

    def __init__(self, *, api_server_arguments: Sequence[str] = (), below: Path | None = None) -> None:
        """api_server_arguments: further flags of kube-apiserver. below: where its directory is made."""
        self.directory = Path(tempfile.mkdtemp(prefix="control-plane-", dir=below))
        self.token, self.powerless_token = secrets.token_hex(16), secrets.token_hex(16)
        tokens = self.directory / "tokens.csv"
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n{self.powerless_token},nobody,nobody\n')
        self.etcd = Etcd(self.directory)
        self.api_server = ApiServer(self.directory, self.etcd.url, tokens, api_server_arguments)
        self.url, self.ca_file = self.api_server.url, self.api_server.ca_file
        self.kubeconfig = self.write_kubeconfig("admin", self.token)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start both and wait until the API server is ready."""
        with (
            timed("control planes"),
            ThreadPoolExecutor(1) as threads,
        ):  # kube-apiserver waits for etcd by itself: start them together
            api_server = threads.submit(self.api_server.start)
            self.etcd.start()
            api_server.result()

    def stop(self) -> None:
        """End both and remove their data."""
        self.api_server.kill()
        self.etcd.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def write_kubeconfig(self, user: str, token: str, *, url: str = "") -> Path:
        """A kubeconfig for this server, or for a proxy in front of it."""
        path = self.directory / f"{user}-{secrets.token_hex(4)}.kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "clusters": [
                {"name": "test", "cluster": {"server": url or self.url, "certificate-authority": str(self.ca_file)}}
            ],
            "users": [{"name": user, "user": {"token": token}}],
        }
        path.write_text(json.dumps(config))
        return path


_DEFAULT_NAMESPACE = "/api/v1/namespaces/default"
