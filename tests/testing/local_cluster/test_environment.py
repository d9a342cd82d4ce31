"""env.sh of `make cluster` has every variable that docs/ uses, and services listen where it says."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from forecast_scheduler.settings.document import Settings
from testing.local_cluster.running import LocalCluster, Ports
from tests.docs.pages import PAGES, ROOT, blocks, text_of

_VARIABLE = re.compile(r"\$\{?([A-Z][A-Z_]{2,})\b")
_NOT_OF_A_CLUSTER = {"KUBEBUILDER_ASSETS", "PROMETHEUS_BIN", "PATH", "CHROMIUM", "TMPDIR"}
"""Of the machine that builds, tests or looks."""


def test_env_sh_has_every_variable_of_the_docs(tmp_path: Path) -> None:
    pages = [page for page in PAGES if page != ROOT / "CONTRIBUTING.md"]
    used = {name for page in pages for name in _VARIABLE.findall(text_of(page))} - _NOT_OF_A_CLUSTER
    own = {
        name
        for page in pages
        for block in blocks(text_of(page))
        for name in re.findall(r"^\$ (?:export )?([A-Z][A-Z_]{2,})=", block.text, re.MULTILINE)
    }
    environment = LocalCluster(tmp_path, days=7, ports=Ports()).environment
    assert {"SCORER", "SCHEDULER", "REBALANCER", "PROMETHEUS", "TOKEN"} <= used
    assert not used - own - environment.keys()


def test_services_listen_where_the_environment_says(tmp_path: Path) -> None:
    ports = Ports(scorer=1, extender=2, schedule=3, advise=4, rebalance=5, webhook=6)
    cluster = LocalCluster(tmp_path, days=7, ports=ports)
    document = yaml.safe_load(cluster.settings_text(tmp_path / "crt", tmp_path / "key"))
    settings = Settings.model_validate(document)
    sections = {"SCORER": "scorer", "EXTENDER": "extender", "SCHEDULER": "schedule", "ADVISOR": "advise"}
    for variable, section in (sections | {"REBALANCER": "rebalance"}).items():
        port = getattr(settings, section).serving.port
        assert cluster.environment[variable] == f"http://127.0.0.1:{port}"
    assert settings.webhook.serving.port == 6
