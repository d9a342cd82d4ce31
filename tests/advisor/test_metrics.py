"""Names and values of what the advisor counts."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from advisor.advice_binder import AdviceFigures
from advisor.advice_metrics import AdviceCollector, FollowingCollector
from advisor.followed_advice import Following
from advisor.pods_waiting_for_advice import GatedPods
from advisor.releases_without_advice import ForecastUse, Outcome, Releases
from cluster.assuming_cluster import AssumingCluster
from scorer.options import ScorerOptions
from testing.settable_clock import SettableClock
from tests.advisor.made_up import Session, gated


def test_names_and_values() -> None:
    clock, cluster, figures = SettableClock(0.0), AssumingCluster(ScorerOptions(), now=0.0), AdviceFigures()
    held = GatedPods(cluster, clock=clock)
    cluster.listeners.append(held.apply)
    releases = Releases(
        Session().as_session,
        held,
        seconds=2.0,
        forecast=lambda: ForecastUse.USABLE,
        leads=lambda: True,
        n_advised=lambda: 0,
    )
    registry = CollectorRegistry()
    registry.register(AdviceCollector(held, releases, figures))

    def shown() -> dict[str, float]:
        lines = generate_latest(registry).decode().splitlines()
        return {name: float(value) for name, value in (line.split(" ") for line in lines if not line.startswith("#"))}

    nothing = shown()
    assert nothing == {
        'forecast_advice_pods_total{outcome="advised"}': 0.0,
        'forecast_advice_pods_total{outcome="preferred"}': 0.0,
        'forecast_advice_pods_total{outcome="no_node"}': 0.0,
        'forecast_advice_pods_total{outcome="overdue"}': 0.0,
        'forecast_advice_pods_total{outcome="no_forecast"}': 0.0,
        'forecast_advice_pods_total{outcome="too_many"}': 0.0,
        'forecast_advice_pods_total{outcome="ending"}': 0.0,
        "forecast_advice_withdrawn_total": 0.0,
        "forecast_gated_pods": 0.0,
        "forecast_gated_by_quota_pods": 0.0,
        "forecast_gated_longest_seconds": 0.0,
    }, "all are there before anything has happened"
    for pod in (gated("a"), gated("b")):
        cluster.put_pod(pod)
    clock.now = 1.5
    figures.advised, figures.preferred, figures.withdrawn = 7, 5, 3
    releases.released.update({Outcome.NO_NODE: 1, Outcome.OVERDUE: 2, Outcome.NO_FORECAST: 4})
    assert list(shown().values()) == [7.0, 5.0, 1.0, 2.0, 4.0, 0.0, 0.0, 3.0, 2.0, 0.0, 1.5]
    assert shown().keys() == nothing.keys()


def test_what_is_known_of_nominations_is_no_number_before_the_first_canary() -> None:
    following, registry = Following(lambda: "1.37"), CollectorRegistry()
    registry.register(FollowingCollector(following))
    assert str(registry.get_sample_value("forecast_nominations_followed")) == "nan"
    for name in ("a", "b", "c"):
        following.refused(name, name)
    assert registry.get_sample_value("forecast_nominations_followed") == 0
    assert registry.get_sample_value("forecast_canaries_total", {"outcome": "refused"}) == 3
