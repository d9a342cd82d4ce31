"""Unit tests of rules as promtool wants them, and running them.

https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testing.servers.prometheus import promtool


@dataclass(frozen=True, slots=True)
class Series:
    """values: in promtool's notation, "1+0x10 _ 3"."""

    name: str
    labels: Mapping[str, str]
    values: str

    def with_labels(self, labels: Mapping[str, str]) -> Series:
        """Some more."""
        return Series(self.name, {**self.labels, **labels}, self.values)

    def written(self) -> dict[str, str]:
        """As promtool reads it."""
        labels = ",".join(f"{name}={json.dumps(value)}" for name, value in self.labels.items())
        return {"series": f"{self.name}{{{labels}}}", "values": self.values}


def series(name: str, values: str, /, **labels: str) -> Series:
    """One series."""
    return Series(name, labels, values)


def run_rule_tests(
    directory: Path, rule_files: Sequence[Path], tests: Iterable[Mapping[str, Any]], *, every: str = "1m"
) -> str:
    """'' = all passed, else what promtool says. every: at which all rules are evaluated."""
    content = {"rule_files": [str(file) for file in rule_files], "evaluation_interval": every, "tests": list(tests)}
    path = directory / "tests.json"
    path.write_text(json.dumps(content))  # YAML is a superset
    try:
        promtool("test", "rules", path)
    except subprocess.CalledProcessError as failure:
        return f"{failure.stdout}\n{failure.stderr}"
    return ""
