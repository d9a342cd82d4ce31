"""Is every alert silent on a Prometheus that has the rules loaded?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def rules_that_are_not_well(groups: Iterable[Mapping[str, Any]]) -> list[str]:
    """Alerts that are pending or firing, and rules whose evaluation failed. groups: of /api/v1/rules."""
    found = []
    for group in groups:
        for rule in group["rules"]:
            if rule.get("state", "inactive") != "inactive":
                found += [
                    f"{rule['name']} is {one['state']}: {one['annotations']['summary']}" for one in rule["alerts"]
                ]
            if rule["health"] != "ok" or rule.get("lastError"):
                found.append(f"{rule['name']} is {rule['health']}: {rule.get('lastError', 'not evaluated yet')}")
    return found
