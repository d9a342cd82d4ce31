"""What is degraded in an installation, the most urgent first, and the command for each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from advisor.advice_settings import GATE_SECONDS
from cluster.degradation import Level
from cluster.options import Ladder
from forecast_scheduler.commands.status.advice import followed, held_by_quota
from forecast_scheduler.commands.status.facts import PREFIX, TRAINER, Facts, NightlyJob, Store, UsedModel
from forecast_scheduler.commands.status.parts import COMMANDS, JudgedPart, PartState, image_tag, selector
from forecast_scheduler.reports.table_format import age

_LADDER: Final = Ladder()

_HELD_SECONDS: Final = GATE_SECONDS + 10.0
"""Advisor and webhook release a pod by then, whatever dies (docs/use/advisor.md)."""

_NIGHT_SECONDS: Final = 30 * 3600
"""As of the alert ForecastTrainFailed: a run a night, and six hours for it to be late."""

_GAPS: Final = 0.25
"""As of the alert ForecastTrainDataGaps."""

_URGENCY: Final = ("schedule", "advisor", "webhook", "extender", "scorer", "rebalancer", "autoscaler")
_EFFECTS: Final = {
    "schedule": "pods that name our schedulers wait",
    "advisor": "new pods are placed without advice",
    "webhook": "new pods are created without templates and advice",
    "extender": "kube-scheduler places without the forecast",
    "scorer": "no page, no reports, no alerts on hot nodes",
    "rebalancer": "no pod is moved before its node gets hot",
    "autoscaler": "no load is named ahead",
}
_NEEDS_LOOK: Final = ("CrashLoopBackOff", "ended", "its readiness")
"""How troubles begin of which the log says more than the events."""

_ABOUT_LOAD: Final = frozenset({"ForecastHotSpotTonight"})
"""Alerts on nodes, not on the installation."""


@dataclass(frozen=True, slots=True)
class Fault:
    """what: is degraded and why, one sentence. command: what to do first."""

    what: str
    command: str


def faults(facts: Facts, parts: Sequence[JudgedPart]) -> list[Fault]:
    """Return all that is degraded, the most urgent first."""
    by_name = {part.name: part for part in parts}
    return [
        *_held(facts),
        *_refusing(facts, by_name),
        *_broken(facts, by_name),
        *_store(facts),
        *_nights(facts),
        *_model(facts),
        *_usage(facts),
        *_versions(facts),
        *_nominations(facts),
        *_alerts(facts),
        *_unread(facts),
    ]


def longest_held(facts: Facts) -> float:
    """Return for how many seconds our gate has held a pod; 0 = it holds none."""
    return max((facts.now - pod.created for pod in facts.held or ()), default=0.0)


def used_model(facts: Facts) -> UsedModel | None:
    """Return the model of the part that has the oldest; None = no part has one, or none answers."""
    models = [answer.model for answer in facts.answers.values() if answer.model is not None]
    if not models:
        ages = [one.value for one in facts.samples if one.name == "forecast_model_age_seconds"]
        versions = [one.labels.get("version", "") for one in facts.samples if one.name == "forecast_model_info"]
        return UsedModel(min(versions, default=""), max(ages)) if ages else None
    return max(models, key=lambda model: model.age)


def finished_job(facts: Facts) -> NightlyJob | None:
    """Return the run of the trainer that ended last."""
    jobs = facts.nightly.jobs if facts.nightly else ()
    return max((job for job in jobs if job.ended), key=lambda job: job.ended, default=None)


def _held(facts: Facts) -> Iterator[Fault]:
    late = [pod for pod in facts.held or () if facts.now - pod.created > _HELD_SECONDS]
    if len(late) > held_by_quota(facts.samples):
        what = f"{len(late)} pod(s) are held by our gate, the first for {age(longest_held(facts))}"
        yield Fault(what, "forecast-scheduler advise --release")


def _refusing(facts: Facts, parts: Mapping[str, JudgedPart]) -> Iterator[Fault]:
    if facts.webhook is None or facts.workloads is None or parts["webhook"].state in (PartState.RUNS, PartState.PARTLY):
        return
    delete = "kubectl delete mutatingwebhookconfiguration forecast-scheduler"
    if facts.webhook.refuses:
        yield Fault("the API server refuses new pods: no webhook answers, and its failurePolicy is Fail", delete)
    elif not facts.webhook.url and parts["webhook"].state is not PartState.DOWN:
        yield Fault("the API server asks a webhook that does not run, for every new pod", delete)


def _broken(facts: Facts, parts: Mapping[str, JudgedPart]) -> Iterator[Fault]:
    broken = [parts[name] for name in _URGENCY if parts[name].state.is_broken]
    for part in sorted(broken, key=lambda part: part.state is PartState.PARTLY):
        because = f" ({part.why})" if part.why else ""
        ready = f" {part.ready}" if part.state is PartState.PARTLY else ""
        effect = "" if part.state is PartState.PARTLY else f": {_EFFECTS[part.name]}"
        verb = "has" if part.state is PartState.NO_LEADER else "is"
        yield Fault(f"{part.name} {verb} {part.state}{ready}{because}{effect}", _look_at(part, facts))
    for name in _URGENCY:
        part, workload = parts[name], (facts.workloads or {}).get(name)
        if workload is not None and workload.stuck and not part.state.is_broken:
            what = f"the rollout of {name} does not end: {workload.stuck}"
            yield Fault(what, f"kubectl -n {facts.namespace} describe pods -l {selector(name)}")


def _look_at(part: JudgedPart, facts: Facts) -> str:
    if not part.ready:
        return f"forecast-scheduler {COMMANDS[part.name]}"
    if part.state is PartState.NO_LEADER or part.why.startswith(_NEEDS_LOOK):
        return f"kubectl -n {facts.namespace} logs deployment/{PREFIX}{part.name} --tail 20"
    return f"kubectl -n {facts.namespace} describe pods -l {selector(part.name)}"


def _store(facts: Facts) -> Iterator[Fault]:
    store = facts.store
    if store is None or store.answers or not store.gone:
        return
    if not (store.namespace or _is_here(store)) and any(one.measured_nodes for one in facts.answers.values()):
        return  # the parts reach it, and this machine does not
    look = f"kubectl -n {store.namespace} get pods,services" if store.namespace else f"curl -s {store.address}/-/ready"
    then = ", and tonight's run will fail" if facts.nightly is not None else ""
    yield Fault(f"usage is not measured{then}: {store.gone}", look)


def _is_here(store: Store) -> bool:
    """Return whether it is on this machine."""
    host = urlsplit(store.address).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _nights(facts: Facts) -> Iterator[Fault]:
    nightly = facts.nightly
    if nightly is None:
        return
    again = _train_now(facts)
    last, running = finished_job(facts), any(not job.ended for job in nightly.jobs)
    if nightly.suspended:
        resume = f'kubectl -n {facts.namespace} patch cronjob {TRAINER} -p \'{{"spec": {{"suspend": false}}}}\''
        yield Fault("the nightly run is suspended", resume)
    elif last is not None and not last.succeeded and not running:
        said = last.last_line or last.why
        yield Fault(f"the nightly run {last.name} failed {age(facts.now - last.ended)} ago: {said}", again)
    elif last is not None and not running and facts.now - last.ended > _NIGHT_SECONDS:
        yield Fault(f"no nightly run has ended for {age(facts.now - last.ended)}", again)
    elif last is None and not running and used_model(facts) is None and not _why_unread(facts, "Jobs"):
        yield Fault("no nightly run has been, so there is no model", again)
    for name, share in gaps(facts).items():
        if share > _GAPS:
            look = f"forecast-scheduler doctor --prometheus {facts.store.address}" if facts.store else again
            yield Fault(f"{share:.0%} of yesterday's half hours of {name} were not measured", look)


def _train_now(facts: Facts) -> str:
    return f"kubectl -n {facts.namespace} create job train-now --from=cronjob/{TRAINER}"


def gaps(facts: Facts) -> dict[str, float]:
    """Return the shares of yesterday's service half hours that were not measured, by resource."""
    metrics = ("forecast_train_data_gap_slots", "forecast_train_data_expected_slots")
    slots, expected = (
        {one.labels.get("resource", ""): one.value for one in facts.samples if one.name == name} for name in metrics
    )
    return {name: slots[name] / of for name, of in expected.items() if of and name in slots}


def _model(facts: Facts) -> Iterator[Fault]:
    model = used_model(facts)
    again = _train_now(facts) if facts.nightly else "forecast-scheduler train"
    if model is None:
        if facts.answers and any(answer.level >= Level.REQUESTS for answer in facts.answers.values()):
            reason = next((why for one in facts.answers.values() for why in one.reasons if "model" in why), "no model")
            yield Fault(f"{reason}: requests decide", again)
        return
    if model.refused:
        look = f"kubectl -n {facts.namespace} logs deployment/{PREFIX}scorer --tail 20" if facts.nightly else again
        yield Fault(f"a newer model is refused: {model.refused}", look)
    elif model.age > _LADDER.oldest_model:
        yield Fault(f"the model is {age(model.age)} old, too old to be used: requests decide", again)
    elif model.age > _LADDER.fresh_model:
        yield Fault(f"the model is {age(model.age)} old: its bounds widen", again)


def _usage(facts: Facts) -> Iterator[Fault]:
    """Parts that measure nothing, although Prometheus answers us or cannot be asked."""
    if facts.store is not None and facts.store.gone:
        return
    blind = {name: one for name, one in facts.answers.items() if one.nodes and 2 * one.measured_nodes < one.nodes}
    if blind:
        reason = next((why for one in blind.values() for why in one.reasons if why.startswith("usage")), "no usage")
        look = f"kubectl -n {facts.namespace} logs deployment/{PREFIX}{min(blind)} --tail 20"
        started = f"forecast-scheduler {COMMANDS[min(blind)]} --prometheus URL"
        in_cluster = min(blind) in (facts.workloads or {})
        yield Fault(f"{', '.join(sorted(blind))}: {reason}", look if in_cluster else started)


def _versions(facts: Facts) -> Iterator[Fault]:
    images = {name: one.image for name, one in (facts.workloads or {}).items() if one.wanted}
    if facts.nightly is not None:
        images["trainer"] = facts.nightly.image
    if len(set(images.values())) > 1:
        by_image: dict[str, list[str]] = {}
        for name, image in images.items():
            by_image.setdefault(image_tag(image), []).append(name)
        named = "; ".join(f"{tag}: {', '.join(names)}" for tag, names in by_image.items())
        yield Fault(f"parts run different versions ({named})", "kubectl apply --server-side -k our-cluster")


def _unread(facts: Facts) -> Iterator[Fault]:
    """Nothing is healthy of which nothing is known."""
    if facts.workloads is None:
        bind = f"kubectl -n {facts.namespace} create rolebinding on-call --role {PREFIX}reports --user NAME"
        why = _why_unread(facts, "Deployments")
        do = bind if not why or "forbidden" in why else "kubectl get --raw /readyz"
        yield Fault("it is not known which parts there are: Deployments cannot be read", do)


def _why_unread(facts: Facts, what: str) -> str:
    """Return why facts could not be read; '' = they were."""
    return next((one.why for one in facts.missing if one.what == what), "")


def _nominations(facts: Facts) -> Iterator[Fault]:
    advice = followed(facts.samples)
    if advice is not None and advice.nominations == 0:
        account = f"system:serviceaccount:{facts.namespace}:{PREFIX}advisor"
        what = "kube-scheduler does not follow nominations: held pods only prefer their nodes"
        yield Fault(what, f"kubectl auth can-i patch pods --subresource=status -A --as {account}")


def _alerts(facts: Facts) -> Iterator[Fault]:
    for alert in facts.alerts or ():
        if alert.severity in ("critical", "warning") and alert.name not in _ABOUT_LOAD:
            more = f", and {alert.number - 1} more" if alert.number > 1 else ""
            yield Fault(f"{alert.name} ({alert.severity}): {alert.summary}{more}", f"see {alert.runbook}")
