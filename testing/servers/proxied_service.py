"""A Service of a control plane, behind which a server on loopback answers through the API server's own proxy.

    client --> API server --> the machine's address, as that of a pod --> server on loopback

The API server passes requests on only to a pod of an EndpointSlice, at that pod's address, and never to loopback.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from testing.servers.cluster_objects import ClusterWriter, pod, running
from testing.servers.control_plane.tcp_proxy import TcpProxy

_ANYWHERE = ("192.0.2.1", 9)
"""An address for documentation (RFC 5737): nothing is sent there."""


@contextmanager
def proxied_service(
    writer: ClusterWriter, place: str, port: int, server_port: int, labels: Mapping[str, str], *, node: str
) -> Iterator[None]:
    """Create the Service and what it needs; the way to the server is gone afterwards, the objects stay.

    place       : namespace/name of the Service; the namespace is there
    server_port : on loopback
    node        : that the pod behind it is bound to
    """
    namespace, name = place.split("/")
    address = own_address()
    with TcpProxy(server_port, address=address) as way:
        metadata = {"namespace": namespace, "name": name, "labels": dict(labels)}
        spec = {"ports": [{"name": "web", "port": port}]}
        writer.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
        status = running() | {"podIP": address, "podIPs": [{"ip": address}]}
        writer.create(pod(f"{name}-0", namespace=namespace, node=node, requests={}, status=status))
        target = {"kind": "Pod", "namespace": namespace, "name": f"{name}-0"}
        of_service = {"namespace": namespace, "name": name, "labels": {"kubernetes.io/service-name": name}}
        writer.create(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": of_service,
                "addressType": "IPv4",
                "ports": [{"name": "web", "port": way.port, "protocol": "TCP"}],
                "endpoints": [{"addresses": [address], "conditions": {"ready": True}, "targetRef": target}],
            }
        )
        yield


def own_address() -> str:
    """An address of this machine that is not loopback. Raises OSError if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(_ANYWHERE)
        return str(probe.getsockname()[0])
