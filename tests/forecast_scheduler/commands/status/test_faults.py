"""What is called a fault of an installation, in which order, and what is to be done first."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from forecast_scheduler.commands.status.facts import Facts, FiringAlert, Missing, Nightly, Sample, Store, Webhook
from forecast_scheduler.commands.status.verdict import Installation, verdict_of
from tests.forecast_scheduler.commands.status.installed import (
    HEALTHY,
    HOUR,
    IMAGE,
    NOW,
    PROMETHEUS,
    answer,
    following,
    held,
    job,
    lease,
    pod,
    with_part,
    workload,
)

_GONE = "Prometheus (monitoring/http:prometheus-k8s:9090) does not answer: 503 no endpoints available"


def night(**changed: object) -> Facts:
    """HEALTHY with a last run that differs."""
    return replace(HEALTHY, nightly=Nightly(IMAGE, "17 3 * * *", False, (job(**changed),)))  # type: ignore[arg-type]


def test_all_is_well() -> None:
    found = verdict_of(HEALTHY)
    assert found.faults == [] and found.is_installed
    assert found.lines()[-1] == "healthy"
    partly = verdict_of(replace(HEALTHY, alerts=None, missing=(Missing("alerts", "403"),)))
    assert partly.lines()[-2:] == ["not known: alerts: 403", "healthy, as far as known"]
    assert (found.figures()["healthy"], partly.figures()["healthy"]) == (True, None)


@pytest.mark.parametrize(
    ("facts", "what", "command"),
    [
        (replace(HEALTHY, held=(held(seconds=60.0),)), "1 pod(s) are held by our gate", "advise --release"),
        (
            replace(with_part(workload("advisor", ready=0)), pods=(pod("advisor", "CrashLoopBackOff after status 2"),)),
            "advisor is down (CrashLoopBackOff after status 2): new pods are placed without advice",
            "kubectl -n forecast-scheduler logs deployment/forecast-scheduler-advisor --tail 20",
        ),
        (
            replace(with_part(workload("scorer", ready=1)), pods=(pod("scorer", "ImagePullBackOff"),)),
            "scorer is partly ready 1/2 (ImagePullBackOff)",
            "describe pods -l app.kubernetes.io/name=forecast-scheduler-scorer",
        ),
        (
            replace(HEALTHY, leases={"advisor": lease(renewed_ago=42.0)}),
            "advisor has no leader (advisor-a has not renewed its Lease for 42 s)",
            "logs deployment/forecast-scheduler-advisor",
        ),
        (
            replace(HEALTHY, leases={"advisor": lease(holder="")}),
            "advisor has no leader (no replica holds its Lease)",
            "logs deployment/forecast-scheduler-advisor",
        ),
        (
            with_part(workload("webhook", ready=0, wanted=0)),
            "the API server asks a webhook that does not run",
            "kubectl delete mutatingwebhookconfiguration forecast-scheduler",
        ),
        (
            replace(HEALTHY, store=Store(PROMETHEUS, "monitoring", answers=False, gone=_GONE)),
            f"usage is not measured, and tonight's run will fail: {_GONE}",
            "kubectl -n monitoring get pods,services",
        ),
        (
            night(succeeded=False, last_line="no node has been scraped since 10:00: mend the scraping"),
            "the nightly run trainer-1 failed 6 h ago: no node has been scraped since 10:00: mend the scraping",
            "create job train-now --from=cronjob/forecast-scheduler-trainer",
        ),
        (night(succeeded=False, last_line=""), "failed 6 h ago: exit status 2", "create job train-now"),
        (night(hours_ago=40.0), "no nightly run has ended for 40 h", "create job train-now"),
        (
            replace(HEALTHY, nightly=Nightly(IMAGE, "17 3 * * *", True, (job(),))),
            "the nightly run is suspended",
            'patch cronjob forecast-scheduler-trainer -p \'{"spec": {"suspend": false}}\'',
        ),
        (
            replace(HEALTHY, nightly=Nightly(IMAGE, "17 3 * * *", False), answers={}),
            "no nightly run has been, so there is no model",
            "create job train-now",
        ),
        (
            replace(HEALTHY, workloads=None, missing=(Missing("Deployments", "no answer within 4 s"),)),
            "it is not known which parts there are",
            "kubectl get --raw /readyz",
        ),
        (
            replace(HEALTHY, answers={"scorer": answer(level=2, age=60 * HOUR)}),
            "the model is 2 days old: its bounds widen",
            "create job train-now",
        ),
        (
            replace(HEALTHY, answers={"scorer": answer(level=3, age=400 * HOUR)}),
            "the model is 17 days old, too old to be used",
            "create job train-now",
        ),
        (
            replace(HEALTHY, answers={"scorer": answer(refused="its signature is wrong")}),
            "a newer model is refused: its signature is wrong",
            "logs deployment/forecast-scheduler-scorer",
        ),
        # The parts count what they measured for five minutes.
        (
            replace(HEALTHY, store=Store("http://127.0.0.1:9090", "", answers=False, gone="connection refused")),
            "usage is not measured, and tonight's run will fail: connection refused",
            "curl -s http://127.0.0.1:9090/-/ready",
        ),
        (
            replace(HEALTHY, answers={"scorer": answer(level=1, measured=0)}),
            "scorer: usage is measured on 0 of 50 nodes",
            "logs deployment/forecast-scheduler-scorer",
        ),
        (
            with_part(workload("scorer", image="registry.example/forecast-scheduler:0.2.0")),
            "parts run different versions (0.2.0: scorer; 0.1.0: advisor, webhook, trainer)",
            "kubectl apply --server-side -k our-cluster",
        ),
        (
            replace(HEALTHY, samples=following(0.0)),
            "kube-scheduler does not follow nominations",
            "auth can-i patch pods --subresource=status",
        ),
        (
            replace(HEALTHY, workloads=None),
            "it is not known which parts there are",
            "create rolebinding on-call --role forecast-scheduler-reports",
        ),
        (
            replace(HEALTHY, alerts=(FiringAlert("ForecastNotReady", "warning", "no list", runbook="alerts.md#x"),)),
            "ForecastNotReady (warning): no list",
            "see alerts.md#x",
        ),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_command(facts: Facts, what: str, command: str) -> None:
    found = verdict_of(facts)
    assert len(found.faults) == 1, found.faults
    assert what in found.faults[0].what
    assert command in found.faults[0].command
    assert found.lines()[-1] == f"do first: {found.faults[0].command}"


@pytest.mark.parametrize(
    "facts",
    [
        # This machine does not reach the store, and the parts do.
        replace(HEALTHY, store=Store("https://mimir.example", "", answers=False, gone="no route")),
        # Jobs that cannot be read may have been.
        replace(
            HEALTHY,
            nightly=Nightly(IMAGE, "17 3 * * *", False),
            answers={},
            missing=(Missing("Jobs", "jobs.batch is forbidden"),),
        ),
        # A part that was never installed, or was scaled down, is not broken.
        with_part(workload("rebalancer", ready=0, wanted=0)),
        # The quota of its tenant holds a pod, not we.
        replace(
            HEALTHY,
            held=(held(seconds=600.0),),
            samples=(*following(1.0), Sample("forecast_gated_by_quota_pods", {}, 1.0)),
        ),
        # It led once, and still shows what it knew then.
        replace(HEALTHY, samples=(*following(1.0), *following(0.0, instance="b", leads=False))),
        replace(HEALTHY, samples=following(math.nan)),
        # A run that failed is being tried again.
        replace(
            HEALTHY,
            nightly=Nightly(
                IMAGE, "17 3 * * *", False, (replace(job(), name="now", began=NOW, ended=0.0), job(succeeded=False))
            ),
        ),
        replace(HEALTHY, alerts=(FiringAlert("ForecastHotSpotTonight", "critical", "5 nodes"),)),
        replace(HEALTHY, alerts=(FiringAlert("ForecastTrainFiguresMissing", "info", "none"),)),
        # The API server asks a webhook by a URL, as of `make cluster`, where none was started.
        replace(
            HEALTHY,
            workloads={"scorer": workload("scorer")},
            leases={},
            webhook=Webhook(refuses=False, url="https://127.0.0.1:8443/mutate"),
        ),
    ],
)  # fmt: skip
def test_what_is_no_fault_is_none(facts: Facts) -> None:
    assert verdict_of(facts).faults == []


def test_the_cause_comes_before_its_effects() -> None:
    everything = replace(
        HEALTHY,
        workloads={**(HEALTHY.workloads or {}), "advisor": workload("advisor", ready=0)},
        held=(held(seconds=60.0),),
        nightly=Nightly(IMAGE, "17 3 * * *", False, (job(succeeded=False),)),
        answers={"scorer": answer(level=2, age=60 * HOUR)},
        store=Store(PROMETHEUS, "monitoring", answers=False, gone=_GONE),
    )
    found = [" ".join(one.what.split()[:3]).rstrip(":") for one in verdict_of(everything).faults]
    assert found == [
        "1 pod(s) are",
        "advisor is down",
        "usage is not",
        "the nightly run",
        "the model is",
    ]


def test_a_webhook_that_is_down_is_first_taken_out_if_pods_are_refused_without_it() -> None:
    refusing = replace(with_part(workload("webhook", ready=0)), webhook=Webhook(refuses=True))
    first, second = verdict_of(refusing).faults
    assert "refuses new pods" in first.what
    assert first.command == "kubectl delete mutatingwebhookconfiguration forecast-scheduler"
    assert second.what == "webhook is down (it has no pods): new pods are created without templates and advice"


def test_half_hours_that_were_not_measured_are_named() -> None:
    labels = {"resource": "cpu"}
    of_cpu = {"gap": 40.0, "expected": 100.0}
    slots = tuple(Sample(f"forecast_train_data_{name}_slots", labels, value) for name, value in of_cpu.items())
    found = verdict_of(replace(HEALTHY, samples=slots))
    assert [one.what for one in found.faults] == ["40% of yesterday's half hours of cpu were not measured"]


def test_figures_and_lines_say_the_same() -> None:
    found: Installation = verdict_of(replace(HEALTHY, leases={"advisor": lease(renewed_ago=42.0)}))
    figures, said = found.figures(), "\n".join(found.lines())
    assert figures["healthy"] is False and figures["do_first"] in said
    assert figures["model"]["version"] in said
    assert figures["advice"]["rate"] == 0.95 and "95% of 20 pods" in said
    assert figures["held"] == {"pods": ["shop/cart-1"], "longest_seconds": 2.0}
    assert {one["name"]: one["state"] for one in figures["parts"]}["rebalancer"] == "not installed"
    assert "not installed: extender, schedule, rebalancer, autoscaler" in said


def test_a_store_that_no_settings_name_is_said_to_be_unseen() -> None:
    unnamed = replace(HEALTHY, store=None, samples=(), alerts=None)
    assert (
        "Prometheus: not looked at: the settings name none (prometheus.url), and none is found"
        in verdict_of(unnamed).lines()
    )
    refused = replace(unnamed, missing=(Missing("Prometheus", "403"),))
    assert [line for line in verdict_of(refused).lines() if "Prometheus" in line] == ["not known: Prometheus: 403"]


def test_nothing_is_installed_in_an_empty_namespace() -> None:
    assert not verdict_of(Facts("forecast-scheduler", NOW, workloads={})).is_installed
    # What could not be read may be there.
    assert verdict_of(Facts("forecast-scheduler", NOW)).is_installed
