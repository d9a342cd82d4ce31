"""Whether Prometheus can scrape what is installed: every combination of parts, certificates and ServiceMonitors that a
page shows, ServiceMonitors held against the Services, ports and Secrets of the same combination.

The operator refuses a ServiceMonitor whose Secret is not there, and raises PrometheusOperatorRejectedResources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from admission.certificates.certificate_secret import KEYS
from forecast_scheduler.settings.document import Settings, load_settings
from testing.servers.kustomize import DEPLOY
from tests.deploy.rights import command_of
from tests.deploy.shown import Fields, block_about, built_as_shown, file_shown, secrets_made_by_hand

Manifest = dict[str, Any]

OURS: Final = "forecast-scheduler"
COMPONENTS: Final = "../deploy/components"
ALONE: Final[Fields] = {"resources": ["../deploy/overlays/kube-prometheus"]}
"""As deployment.md applies it where there is neither an extender nor a webhook."""


def _overlay(name: str, *components: str) -> Fields:
    return {"resources": [f"../deploy/overlays/{name}"], "components": [f"{COMPONENTS}/{one}" for one in components]}


def _scraped_besides(*parts: str) -> Fields:
    """`our-prometheus` of deployment.md, with the lines of these parts."""
    shown = file_shown("operate/deployment.md", "our-prometheus/kustomization.yaml")
    wanted = [f"{COMPONENTS}/scrape-{part}" for part in parts]
    assert set(wanted) <= set(shown["components"])
    return {**shown, "components": wanted}


@dataclass(frozen=True, slots=True)
class Combination:
    """installed : what is applied of our parts; scraping: for Prometheus; by_hand: Secrets of the extender are made by
    the commands of deployment.md"""

    installed: Fields
    scraping: Fields
    by_hand: bool = False


COMBINATIONS: Final = {
    "getting started": Combination(
        _overlay("shadow"), file_shown("start/getting-started.md", "our-prometheus/kustomization.yaml"), by_hand=True
    ),
    "extender": Combination(_overlay("extender"), _scraped_besides("extender"), by_hand=True),
    "extender, cert-manager": Combination(
        _overlay("extender", "certificates-by-cert-manager"), _scraped_besides("extender")
    ),
    "own loops": Combination(_overlay("own-loops"), ALONE),
    "own loops, pushgateway": Combination(_overlay("own-loops", "pushgateway"), ALONE),
    "gpu": Combination(_overlay("gpu"), ALONE),
    "local": Combination(_overlay("local"), ALONE),
    "webhook": Combination(_overlay("webhook"), _scraped_besides("webhook")),
    "webhook, cert-manager": Combination(
        file_shown("operate/webhook.md", "my-webhook/kustomization.yaml"),
        block_about("operate/webhook.md", "kind: ServiceMonitor"),
    ),
    "advisor": Combination(_overlay("advisor"), _scraped_besides("webhook")),
    "rebalancer": Combination(_overlay("rebalancer"), ALONE),
    "autoscaler": Combination(_overlay("autoscaler"), ALONE),
    "all parts": Combination(
        _overlay("gpu", "extender", "webhook", "advisor", "rebalancer", "autoscaler"),
        file_shown("operate/deployment.md", "our-prometheus/kustomization.yaml"),
        by_hand=True,
    ),
}


@pytest.fixture(scope="module", params=list(COMBINATIONS))
def combination(request: pytest.FixtureRequest) -> Combination:
    return COMBINATIONS[request.param]


@pytest.fixture(scope="module")
def installed(combination: Combination, tmp_path_factory: pytest.TempPathFactory) -> list[Manifest]:
    return built_as_shown(tmp_path_factory.mktemp("installed"), combination.installed)


@pytest.fixture(scope="module")
def monitors(combination: Combination, tmp_path_factory: pytest.TempPathFactory) -> list[Manifest]:
    manifests = built_as_shown(tmp_path_factory.mktemp("scraping"), combination.scraping)
    return [one for one in manifests if one["kind"] == "ServiceMonitor"]


def _settings() -> Settings:
    return load_settings(DEPLOY / "base" / "common" / "settings.yaml", {})


def _selected(monitor: Manifest, installed: list[Manifest]) -> list[Manifest]:
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    return [one for one in installed if one["kind"] == "Service" and wanted <= one["metadata"]["labels"].items()]


def _keys_named(endpoint: Manifest) -> set[tuple[str, str]]:
    """(Secret, key), as the operator looks for them in the ServiceMonitor's namespace."""
    tls = endpoint.get("tlsConfig", {})
    references = [*(tls[place]["secret"] for place in ("ca", "cert") if place in tls)]
    references += [tls["keySecret"]] if "keySecret" in tls else []
    return {(one["name"], one["key"]) for one in references}


def _keys_made(combination: Combination, installed: list[Manifest]) -> Iterator[tuple[str, str]]:
    """(Secret, key) that are there once the combination is up: by hand, by cert-manager or by the webhook itself."""
    deployments = {one["metadata"]["name"]: one for one in installed if one["kind"] == "Deployment"}
    if combination.by_hand and f"{OURS}-extender" in deployments:
        for name, keys in secrets_made_by_hand("operate/deployment.md").items():
            yield from ((name, key) for key in keys)
    for one in installed:
        if one["kind"] == "Certificate":  # https://cert-manager.io/docs/usage/certificate/
            yield from ((one["spec"]["secretName"], key) for key in ("ca.crt", "tls.crt", "tls.key"))
    if webhook := deployments.get(f"{OURS}-webhook"):
        [container] = webhook["spec"]["template"]["spec"]["containers"]
        if {"name": "FORECAST_SCHEDULER_WEBHOOK__CERTIFICATES__MANAGED", "value": "false"} not in container.get(
            "env", []
        ):
            secret = _settings().webhook.certificates.secret
            assert secret.namespace == OURS and _settings().webhook.certificates.managed
            yield from ((secret.name, key) for key in KEYS)


def test_no_service_monitor_names_a_secret_that_is_not_there(
    combination: Combination, installed: list[Manifest], monitors: list[Manifest]
) -> None:
    made = set(_keys_made(combination, installed))
    for monitor in monitors:
        assert monitor["metadata"]["namespace"] == OURS
        for endpoint in monitor["spec"]["endpoints"]:
            assert _keys_named(endpoint) <= made, monitor["metadata"]["name"]


def test_every_service_is_scraped_by_one_at_a_port_that_it_has(
    installed: list[Manifest], monitors: list[Manifest]
) -> None:
    scraped = [service["metadata"]["name"] for monitor in monitors for service in _selected(monitor, installed)]
    assert sorted(scraped) == sorted(one["metadata"]["name"] for one in installed if one["kind"] == "Service")
    for monitor in monitors:
        for service in _selected(monitor, installed):
            ports = {one["name"] for one in service["spec"]["ports"]}
            assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports


def test_it_is_asked_in_the_way_that_the_service_answers(installed: list[Manifest], monitors: list[Manifest]) -> None:
    certified = {name for one in installed if one["kind"] == "Certificate" for name in one["spec"].get("dnsNames", ())}
    for monitor in monitors:
        [endpoint] = monitor["spec"]["endpoints"]
        for service in _selected(monitor, installed):
            name = service["metadata"]["name"]
            if name == f"{OURS}-pushgateway":  # not ours: it answers anybody
                continue
            serving = getattr(_settings(), command_of(name.removeprefix(f"{OURS}-"))).serving
            assert ("bearerTokenFile" in endpoint) == serving.kubernetes_auth
            assert ("cert" in endpoint.get("tlsConfig", {})) == (serving.client_ca is not None)
            if endpoint.get("scheme") == "https":
                assert endpoint["tlsConfig"]["serverName"] == f"{name}.{OURS}.svc"
                assert not certified or endpoint["tlsConfig"]["serverName"] in certified


def test_by_itself_the_overlay_needs_no_secret(tmp_path: Path) -> None:
    """Whatever is installed beside it."""
    manifests = built_as_shown(tmp_path / "alone", ALONE)
    endpoints = [
        endpoint for one in manifests if one["kind"] == "ServiceMonitor" for endpoint in one["spec"]["endpoints"]
    ]
    assert endpoints and not any(_keys_named(endpoint) for endpoint in endpoints)


def test_the_page_names_every_component() -> None:
    page = (DEPLOY.parent / "docs" / "operate" / "deployment.md").read_text()
    assert [place.name for place in (DEPLOY / "components").iterdir() if f"`{place.name}`" not in page] == []
