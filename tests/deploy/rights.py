"""The rights that manifests give to an account: told from them, taken away one by one, and given back."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from testing.servers.applying import Applier
from testing.servers.audit import Audit, Right
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.shipped_rights import NAMESPACE, ShippedRights
from testing.waiting import eventually

Manifest = dict[str, Any]

DELEGATED: Final = frozenset(
    {
        ("create", "authentication.k8s.io", "tokenreviews"),
        ("create", "authorization.k8s.io", "subjectaccessreviews"),
    }
)
"""What Kubernetes' own ClusterRole system:auth-delegator grants."""

OF_EVERYBODY: Final = frozenset({("create", "authorization.k8s.io", "selfsubjectaccessreviews")})
"""What of the ClusterRole system:basic-user, which every account has, is used."""

_ROLES: Final = ("Role", "ClusterRole")


def account_of(part: str) -> str:
    """User name of a part's service account."""
    return f"system:serviceaccount:{NAMESPACE}:forecast-scheduler-{part}"


def command_of(part: str) -> str:
    """The command that a part runs, and its group of settings."""
    return {"advisor": "advise", "rebalancer": "rebalance", "autoscaler": "autoscale"}.get(part, part)


def granted(manifests: Iterable[Manifest], part: str) -> set[Right]:
    """By all its bindings."""
    manifests = list(manifests)
    bound = _bound(manifests, part)
    rights = {right for role in _roles(manifests, bound) for rule in role["rules"] for right in _rights(rule)}
    return rights | (DELEGATED if ("ClusterRole", "system:auth-delegator") in bound else set())


class Installed(ShippedRights):
    """With what the API server notes of requests."""

    def __init__(self, plane: ControlPlane, applier: Applier, audit: Audit, manifests: list[Manifest]) -> None:
        super().__init__(plane, applier, manifests)
        self.audit = audit

    @contextmanager
    def without(self, right: Right, part: str) -> Iterator[None]:
        """Its account has all rights but this one; both counts as soon as the API server knows."""
        before = [one for one in self._of(part) if any(right in _rights(rule) for rule in one["rules"])]
        try:
            for role in before:
                rules = [kept for rule in role["rules"] for kept in _split(rule, right)]
                self.applier.apply(copy.deepcopy(role) | {"rules": rules})
            assert eventually(lambda: not self.may(right, part))
            yield
        finally:
            self.applier.apply_all(before)
            assert eventually(lambda: self.may(right, part))

    def may(self, right: Right, part: str) -> bool:
        """Whether the API server says so, of an object that a rule may name."""
        verb, group, resource = right
        plain, _, sub = resource.partition("/")
        names = {
            name
            for role in self._of(part)
            for rule in role["rules"]
            if right in _rights(rule)
            for name in rule.get("resourceNames", [""])
        }
        attributes = {"verb": verb, "group": group, "resource": plain, "subresource": sub, "namespace": NAMESPACE}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": account_of(part), "resourceAttributes": attributes | {"name": min(names)}},
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(self.applier.send("POST", path, review, kind="application/json")["status"]["allowed"])

    def _of(self, part: str) -> list[Manifest]:
        return _roles(self.manifests, _bound(self.manifests, part))


def _bound(manifests: list[Manifest], part: str) -> set[tuple[str, str]]:
    """Kind and name of the roles."""
    return {
        (one["roleRef"]["kind"], one["roleRef"]["name"])
        for one in manifests
        if one["kind"] in ("RoleBinding", "ClusterRoleBinding")
        and any(subject["name"] == f"forecast-scheduler-{part}" for subject in one["subjects"])
    }


def _roles(manifests: list[Manifest], bound: set[tuple[str, str]]) -> list[Manifest]:
    return [one for one in manifests if one["kind"] in _ROLES and (one["kind"], one["metadata"]["name"]) in bound]


def _rights(rule: Manifest) -> set[Right]:
    """Without those for routes of ours, of which the API server keeps no audit."""
    return {
        (verb, group, resource)
        for verb in rule["verbs"]
        for group in rule.get("apiGroups", [])
        for resource in rule.get("resources", [])
    }


def _split(rule: Manifest, without: Right) -> list[Manifest]:
    """Rules that grant the same but for this right."""
    if without not in _rights(rule):
        return [rule]
    return [
        rule | {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
        for verb, group, resource in sorted(_rights(rule) - {without})
    ]
