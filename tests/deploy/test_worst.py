"""docs/operate/security.md says of every right in deploy/ what its holder could do at worst, and of no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import yaml

from testing.servers.audit import Right
from testing.servers.kustomize import DEPLOY
from tests.deploy.rights import DELEGATED

PAGE: Final = DEPLOY.parent / "docs" / "operate" / "security.md"
HEADING: Final = "## What each right could do at worst"
POLICY: Final = re.compile(r"`(forecast-scheduler-[a-z-]+)`")


def _objects() -> list[dict[str, Any]]:
    """Of all files in deploy/: every base, component and overlay."""
    files = sorted(file for file in DEPLOY.rglob("*.yaml") if not file.is_relative_to(DEPLOY / "chart"))
    return [one for file in files for one in yaml.safe_load_all(file.read_text()) if isinstance(one, dict)]


def _granted() -> set[tuple[str, Right]]:
    """Account and right; a role that deploy/ binds to no account counts under its own name."""
    made = _objects()
    bindings = [one for one in made if one.get("kind") in ("RoleBinding", "ClusterRoleBinding")]
    holders: dict[tuple[str, str], set[str]] = {}
    for one in bindings:
        role = one["roleRef"]["kind"], one["roleRef"]["name"]
        holders.setdefault(role, set()).update(subject["name"] for subject in one["subjects"])
    rights: set[tuple[str, Right]] = set()
    for role, names in holders.items():
        if role == ("ClusterRole", "system:auth-delegator"):
            rights |= set(product(map(_short, names), DELEGATED))
    for one in made:
        if one.get("kind") in ("Role", "ClusterRole"):
            name = one["metadata"]["name"]
            of_accounts = holders.get((one["kind"], name), set())
            # People are bound to readers, and Prometheus is.
            held_by = {name} if name.endswith(("-reader", "-viewer")) else of_accounts or {name}
            rights |= {(_short(holder), right) for holder in held_by for right in _of_rules(one["rules"])}
    return rights


def _of_rules(rules: list[dict[str, Any]]) -> Iterator[Right]:
    for rule in rules:
        yield from product(rule["verbs"], rule.get("apiGroups", [""]), rule.get("resources", []))
        yield from product(rule["verbs"], [""], rule.get("nonResourceURLs", []))


def _short(account: str) -> str:
    is_reader = account.endswith(("-reader", "-viewer"))
    return account if is_reader else account.removeprefix("forecast-scheduler-")


def _rows() -> list[list[str]]:
    section = PAGE.read_text().partition(HEADING)[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [re.split(r" *\| *", line.strip("| ")) for line in lines[1:]]


def _listed() -> list[tuple[str, Right]]:
    return [
        (account, (verb, *_group_and_name(named)))
        for accounts, verbs, resources, _ in _rows()
        for account, verb, named in product(accounts.split(", "), verbs.split(", "), resources.split(", "))
    ]


def _group_and_name(named: str) -> tuple[str, str]:
    if named.startswith("/"):
        return "", named
    name, _, group = named.partition(".")
    return group, name


def test_every_right_has_its_worst_and_no_row_is_without_a_right() -> None:
    granted, listed = _granted(), _listed()
    assert (granted - set(listed), set(listed) - granted) == (set(), set())
    assert len(granted) > 100


def test_policies_that_rows_name_are_shipped_and_bound_and_the_other_way_round() -> None:
    named = {name for *_, worst in _rows() for name in POLICY.findall(worst)}
    made = [one for one in _objects() if "$patch" not in one]
    shipped = {one["metadata"]["name"] for one in made if one.get("kind") == "ValidatingAdmissionPolicy"}
    bindings = [one["spec"] for one in made if one.get("kind") == "ValidatingAdmissionPolicyBinding"]
    assert named == shipped == {one["policyName"] for one in bindings}
    assert all(one["validationActions"] == ["Deny"] and "matchResources" not in one for one in bindings)
