"""Namespaces whose pods count in the quota of a tenant."""

from __future__ import annotations

from collections.abc import Sequence

from tenants.elastic_quota import ElasticQuota


class QuotaNamespaces:
    """Implements ResourceSink. `has` may be asked from any thread.

    Until the quotas were listed, every namespace counts.
    """

    def __init__(self) -> None:
        self._quotas: dict[str, frozenset[str]] | None = None

    def has(self, namespace: str) -> bool:
        """Return whether pods of the namespace may be waiting for a quota."""
        return self._quotas is None or any(namespace in of_quota for of_quota in [*self._quotas.values()])

    def replace(self, objects: Sequence[ElasticQuota]) -> None:
        """These are all quotas."""
        self._quotas = {one.key: _namespaces(one) for one in objects}

    def put(self, obj: ElasticQuota) -> None:
        """A quota is new or has changed."""
        self._quotas = {**(self._quotas or {}), obj.key: _namespaces(obj)}

    def delete(self, obj: ElasticQuota) -> None:
        """A quota is gone."""
        self._quotas = {key: those for key, those in (self._quotas or {}).items() if key != obj.key}


def _namespaces(quota: ElasticQuota) -> frozenset[str]:
    return frozenset({quota.namespace, *quota.namespaces})
