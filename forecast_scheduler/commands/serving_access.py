"""Which clients may use a service by its settings: those that the API server authorizes."""

from __future__ import annotations

from typing import Final

from base.errors import InputError
from kube.client.cluster_access import ClusterAccess
from serving.hosts import Hosts
from serving.kubernetes_access import AccessLimits, KubernetesAccess
from serving.server import only_this_machine
from serving.server_settings import ServingOptions
from serving.token_reviews import api_server_ask, check_delegation

_REVIEW_SECONDS: Final = 3.0
"""Timeout of the API server's answer; after it the client gets 503."""


def check_exposed(settings: ServingOptions) -> None:
    """Raises InputError if every client on the network could send requests, and no setting allows that."""
    asks = settings.token_files or settings.client_ca or settings.kubernetes_auth
    if asks or settings.anonymous or only_this_machine(settings.host):
        return
    group = settings.group
    raise InputError(
        f"{group}.host is {settings.host}, where others can reach it, and nothing says who may ask: set "
        f"{group}.kubernetes_auth: true, {group}.token_files (--token-file) or {group}.client_ca (--client-ca), "
        f"or {group}.anonymous: true if anybody may (docs/operate/security.md)"
    )


def hosts_of(settings: ServingOptions) -> Hosts:
    """Under which names clients may ask. Raises InputError: a name with port, path or scheme."""
    for name in settings.allowed_hosts:
        if not name or set(name) & set("/:*@ "):
            raise InputError(
                f"{settings.group}.allowed_hosts names {name!r}: write the host name alone, for instance "
                "forecast.example.com"
            )
    names = frozenset(name.lower().removesuffix(".") for name in settings.allowed_hosts)
    return Hosts(names, loopback=only_this_machine(settings.host))


def kubernetes_access(settings: ServingOptions, access: ClusterAccess) -> KubernetesAccess | None:
    """Reviews by the API server; None = they are off. Raises InputError: no API server is named, or no right to ask it;
    ReviewFailed: it does not answer."""
    if not settings.kubernetes_auth:
        if settings.kubernetes_audiences:
            raise InputError(
                f"{settings.group}.kubernetes_audiences is set without {settings.group}.kubernetes_auth: set both"
            )
        return None
    limits = AccessLimits()
    ask = api_server_ask(access.client(connections=limits.reviews), _REVIEW_SECONDS)
    check_delegation(ask)
    return KubernetesAccess(ask, settings.kubernetes_audiences, limits)
