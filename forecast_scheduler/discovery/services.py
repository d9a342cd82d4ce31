"""What the search for a metrics store reads of Services and nodes, as the API server lists them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from kube.decoding.wire_base import StringMap, Wire

_EXTERNAL: Final = "ExternalName"
_HEADLESS: Final = "None"
_CERTIFICATE: Final = "serving-cert-secret-name"
"""How the annotation ends by which OpenShift makes a certificate: behind such a Service is HTTPS."""


@dataclass(frozen=True, slots=True)
class ServicePort:
    """A TCP port of a Service. name: "" = it has none."""

    number: int
    name: str = ""
    is_https: bool = False


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """A Service that can be asked. is_headless: its name means pods, of which any may answer."""

    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[ServicePort, ...] = ()
    is_headless: bool = False


@dataclass(frozen=True, slots=True)
class ClusterNodes:
    """The nodes of the API server.

    addresses  : the internal ones of each
    providers  : "aws", "gce", "azure", ...
    identities : of each, by the names that kube_node_info has for them: system_uuid and provider_id
    """

    addresses: Mapping[str, frozenset[str]]
    providers: frozenset[str] = frozenset()
    identities: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class _Metadata(Wire):
    name: str
    namespace: str = ""
    labels: StringMap | None = None
    annotations: StringMap | None = None


class _Port(Wire):
    port: int
    name: str | None = None
    protocol: str | None = None
    app_protocol: str | None = None


class _ServiceSpec(Wire):
    ports: list[_Port] | None = None
    type: str | None = None
    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")


class _Service(Wire):
    metadata: _Metadata
    spec: _ServiceSpec


class _Address(Wire):
    type: str
    address: str


class _NodeInfo(Wire):
    system_uuid: str = msgspec.field(default="", name="systemUUID")


class _NodeStatus(Wire):
    addresses: list[_Address] | None = None
    node_info: _NodeInfo | None = None


class _NodeSpec(Wire):
    provider_id: str | None = msgspec.field(default=None, name="providerID")


class _Node(Wire):
    metadata: _Metadata
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


class _ListMetadata(Wire):
    # `continue` is a word of Python.
    token: str | None = msgspec.field(default=None, name="continue")


class _Services(Wire):
    items: list[_Service] | None = None
    metadata: _ListMetadata | None = None


class _Nodes(Wire):
    items: list[_Node] | None = None
    metadata: _ListMetadata | None = None


def services_of(body: bytes) -> tuple[list[ServiceFacts], str]:
    """Read a page of a list of Services: those that can be asked, and the token of the next page, "" = it is the last.

    Raises msgspec.DecodeError.
    """
    page = msgspec.json.decode(body, type=_Services)
    found = [_service(one) for one in page.items or () if one.spec.type != _EXTERNAL and one.spec.ports]
    return found, _token(page.metadata)


def nodes_of(body: bytes) -> tuple[ClusterNodes, str]:
    """Read a page of a list of nodes, and the token of the next page. Raises msgspec.DecodeError."""
    page = msgspec.json.decode(body, type=_Nodes)
    nodes = page.items or ()
    addresses = {node.metadata.name: _addresses(node) for node in nodes}
    identities = {node.metadata.name: _identity(node) for node in nodes}
    providers = (one.get("provider_id", "").partition(":")[0] for one in identities.values())
    return ClusterNodes(addresses, frozenset(filter(None, providers)), identities), _token(page.metadata)


def together(pages: Sequence[ClusterNodes]) -> ClusterNodes:
    """The nodes of several pages."""
    addresses = {name: known for page in pages for name, known in page.addresses.items()}
    identities = {name: known for page in pages for name, known in page.identities.items()}
    return ClusterNodes(addresses, frozenset[str]().union(*(page.providers for page in pages)), identities)


def _service(one: _Service) -> ServiceFacts:
    labels = {key: value or "" for key, value in (one.metadata.labels or {}).items()}
    has_certificate = any(key.endswith(_CERTIFICATE) for key in one.metadata.annotations or ())
    ports = tuple(
        ServicePort(port.port, port.name or "", has_certificate or _says_https(port))
        for port in one.spec.ports or ()
        if port.protocol in (None, "TCP")
    )
    is_headless = one.spec.cluster_ip == _HEADLESS
    return ServiceFacts(one.metadata.namespace, one.metadata.name, labels, ports, is_headless)


def _says_https(port: _Port) -> bool:
    return (port.app_protocol or "").lower() == "https" or (port.name or "").startswith("https") or port.port == 443


def _addresses(node: _Node) -> frozenset[str]:
    listed = (node.status.addresses if node.status is not None else None) or ()
    return frozenset(one.address for one in listed if one.type == "InternalIP")


def _identity(node: _Node) -> dict[str, str]:
    info = node.status.node_info if node.status is not None else None
    known = {
        "system_uuid": info.system_uuid if info is not None else "",
        "provider_id": (node.spec.provider_id if node.spec is not None else None) or "",
    }
    return {name: value for name, value in known.items() if value}


def _token(metadata: _ListMetadata | None) -> str:
    return (metadata.token if metadata is not None else None) or ""
