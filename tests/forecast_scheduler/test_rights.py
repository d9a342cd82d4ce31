"""The rights that docs/use/scheduling.md lists are those that deploy/base/schedule/rbac.yaml and gpu.yaml grant."""

from __future__ import annotations

import re
from pathlib import Path

from testing.processes.shipped_schedule import documents

PAGE = (Path(__file__).parents[2] / "docs" / "use" / "scheduling.md").read_text()


def _granted(file: str) -> set[tuple[str, str]]:
    """(verb, resource)"""
    roles = [one for one in documents(file) if one["kind"] in ("ClusterRole", "Role")]
    rules = [rule for role in roles for rule in role["rules"]]
    return {(verb, resource) for rule in rules for verb in rule["verbs"] for resource in rule["resources"]}


def _listed(table: int) -> set[tuple[str, str]]:
    """In a table: verbs, and resources with their group behind a dot or the place behind `in`."""
    (section,) = re.findall(r"^## Rights\n(.*?)^## ", PAGE, flags=re.DOTALL | re.MULTILINE)
    text = section.split("| rights | on | for |")[1 + table]
    rows = [re.split(r" *\| *", line) for line in text.splitlines() if line.startswith("|")][1:]
    names = {row[2]: [name.split(".")[0] for name in row[2].split(" in ")[0].split(", ")] for row in rows}
    return {(verb, name) for row in rows for verb in row[1].split(", ") for name in names[row[2]]}


def test_the_page_and_the_file_grant_the_same() -> None:
    granted = _granted("base/schedule/rbac.yaml")
    assert _listed(0) == granted
    assert ("patch", "persistentvolumes") in granted and ("delete", "pods") in granted
    assert _listed(1) == _granted("components/gpu/rbac.yaml")
