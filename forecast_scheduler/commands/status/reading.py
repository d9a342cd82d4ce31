"""Reads the facts of an installation with a kubeconfig.

    at once   Deployments, CronJob, Jobs, pods, Leases, held pods, webhook configuration
    then      what the parts say of themselves, Prometheus, the last line of the last nightly run
    at last   metrics of an advisor, if Prometheus has none

What may not be read, or does not answer in time, becomes one more line of `missing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec
from kubernetes import client

from advisor.remove_all_gates import held_pods
from base.errors import InputError
from forecast_scheduler.commands.status import api_objects
from forecast_scheduler.commands.status.advice import followed
from forecast_scheduler.commands.status.asked_parts import (
    ON_THIS_MACHINE,
    THROUGH_PROXY,
    WITHOUT_LEASE,
    Ask,
    at_url,
    metrics_of,
    on_this_machine,
    said_by,
    through_proxy,
)
from forecast_scheduler.commands.status.asked_store import StoreAnswer, ask_store
from forecast_scheduler.commands.status.at_once import NotRead, ask_all
from forecast_scheduler.commands.status.facts import TRAINER, Facts, HeldPod, Missing, Nightly, NightlyJob
from forecast_scheduler.commands.status.faults import finished_job
from forecast_scheduler.settings.document import Settings
from kube.client.kubernetes_client import required, send
from kube.leader_election.lease import leases_path
from kube.leader_election.record import LeaseRecord, read_leases

_SECONDS: Final = 3.0
"""Seconds that one request may take; all of them run at once, in three rounds at most."""

_CHAIN_SECONDS: Final = 9.0
"""For three requests that follow from each other: settings, query, alerts."""

_LINE_BYTES: Final = 2000
_WEBHOOK: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/forecast-scheduler"
_JOB_LOG: Final = "the log of the nightly run"

T = TypeVar("T")


class _Unreachable(NotRead):
    """The API server does not answer."""


def read_facts(api: client.ApiClient, settings: Settings, now: float, find_store: Callable[[], str]) -> Facts:
    """Return what can be read of the installation in the namespace of the settings' Leases.

    now        : unix seconds
    find_store : returns the URL of the metrics store, for pods of the cluster, if no settings name one; "" = none

    Raises InputError: the API server does not answer, or refuses the credentials.
    """
    reader = _Reader(api, settings, find_store)
    facts, config_map = reader.objects(now)
    facts = reader.with_answers(facts, config_map)
    return replace(facts, missing=tuple(reader.missing))


@dataclass(slots=True)
class _Reader:
    api: client.ApiClient
    settings: Settings
    find_store: Callable[[], str]
    missing: list[Missing] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        return self.settings.leader_election.namespace

    def objects(self, now: float) -> tuple[Facts, str]:
        """Return what the API server has, and the name of the ConfigMap with the settings, '' = none is named."""
        apps, batch, core = (
            f"/{group}/namespaces/{self.namespace}" for group in ("apis/apps/v1", "apis/batch/v1", "api/v1")
        )
        found = ask_all(
            {
                "Deployments": partial(self._object, f"{apps}/deployments", api_objects.workloads_of),
                "the CronJob": partial(self._object, f"{batch}/cronjobs/{TRAINER}", api_objects.nightly_of),
                "Jobs": partial(self._object, f"{batch}/jobs", api_objects.jobs_of),
                "pods": partial(self._object, f"{core}/pods", api_objects.pods_of),
                "Leases": partial(self._object, leases_path(self.namespace), read_leases),
                "held pods": partial(held_pods, self.api),
                "the webhook's configuration": partial(self._object, _WEBHOOK, api_objects.webhook_of),
            },
            _SECONDS + 1.0,
        )
        if isinstance(refusal := found["Deployments"], _Unreachable | InputError):
            raise InputError(str(refusal)) from refusal
        workloads, config_map = self._known(found, "Deployments") or (None, "")
        nightly, its_config_map = self._known(found, "the CronJob") or (None, "")
        jobs, held = self._known(found, "Jobs") or (), self._known(found, "held pods")
        facts = Facts(
            namespace=self.namespace,
            now=now,
            workloads=workloads,
            nightly=None if nightly is None else replace(nightly, jobs=jobs),
            pods=self._known(found, "pods") or (),
            leases=self._by_part(self._known(found, "Leases") or {}),
            webhook=self._known(found, "the webhook's configuration"),
            held=None if held is None else tuple(HeldPod(f"{pod.namespace}/{pod.name}", pod.created) for pod in held),
        )
        return facts, config_map or its_config_map

    def with_answers(self, facts: Facts, config_map: str) -> Facts:
        """Return them with what parts, Prometheus and the log of the nightly run say."""
        asks = self._asks(facts)
        questions: dict[str, Callable[[], Any]] = {part: partial(said_by, part, ask) for part, ask in asks.items()}
        questions["Prometheus"] = partial(self._store, config_map)
        if (job := finished_job(facts)) is not None:
            questions[_JOB_LOG] = partial(self._last_line, job, facts)
        found = ask_all(questions, _CHAIN_SECONDS + 1.0)
        is_local = not facts.workloads
        if not is_local:
            for part in asks:
                self._known(found, part)
        answered = {part: found[part] for part in asks if not isinstance(found[part], Exception)}
        facts = replace(
            facts,
            answers={part: answer for part, answer in answered.items() if answer is not None},
            local=frozenset(answered) if is_local else frozenset(),
        )
        if job is not None and (line := self._known(found, _JOB_LOG)):
            facts = replace(facts, nightly=_with_last_line(facts.nightly, job, line))
        asked: StoreAnswer | None = self._known(found, "Prometheus")
        if asked is not None:
            facts = replace(facts, store=asked[0], samples=asked[1], alerts=asked[2])
            self.missing += asked[3]
        if "advisor" in answered and followed(facts.samples) is None:
            what = "metrics of the advisor"
            of_advisor = ask_all({what: partial(metrics_of, asks["advisor"])}, _SECONDS + 1.0)
            facts = replace(facts, samples=(*facts.samples, *(self._known(of_advisor, what) or ())))
        return facts

    def _asks(self, facts: Facts) -> dict[str, Ask]:
        """Return how to ask the parts that can be asked: those of the cluster, or of this machine if it has none."""
        if facts.workloads:
            ready = (part for part in THROUGH_PROXY if part in facts.workloads and facts.workloads[part].ready)
            return {part: through_proxy(self.api, part, _SECONDS) for part in ready}
        ours = {*WITHOUT_LEASE, *facts.leases} if facts.workloads is not None else ()
        asks = {part: on_this_machine(self.settings, part, _SECONDS) for part in ON_THIS_MACHINE if part in ours}
        if facts.webhook is not None and facts.webhook.url:
            asks["webhook"] = at_url(facts.webhook, _SECONDS)
        return asks

    def _known(self, found: Mapping[str, Any], what: str) -> Any:
        """Return an answer; None = there is no such object, or it could not be read, which is noted."""
        answer = found[what]
        if not isinstance(answer, Exception):
            return answer
        self.missing.append(Missing(what, str(answer)))
        return None

    def _object(self, path: str, decode: Callable[[bytes], T]) -> T | None:
        """Return what an object or a list says; None = there is none. Raises NotRead, or InputError after a 401."""
        answer = send(self.api, "GET", path, seconds=_SECONDS)
        if answer.why_none:
            raise _Unreachable(f"the API server {self.api.configuration.host} does not answer: {answer.why_none}")
        if answer.status == 404:
            return None
        if answer.status == 401:
            required(answer, "read the installation")
        if not answer.is_success:
            raise NotRead(answer.text)
        try:
            return decode(answer.body)
        except msgspec.DecodeError as error:
            raise NotRead(f"{path} cannot be read: {error}") from error

    def _by_part(self, leases: Mapping[str, LeaseRecord]) -> dict[str, Any]:
        """Return the Leases of parts with leader election, by part. Shards have Leases of their own names."""
        options = {
            "advisor": self.settings.advise.leader_election,
            "schedule": self.settings.schedule.leader_election,
            "rebalancer": self.settings.rebalance.leader_election,
            "autoscaler": self.settings.autoscale.leader_election,
        }
        names = {part: one.name for part, one in options.items()}
        if any(name.startswith(f"{names['schedule']}-replica-") for name in leases):
            del names["schedule"]
        return {part: api_objects.lease_of(leases[name]) for part, name in names.items() if name in leases}

    def _store(self, config_map: str) -> StoreAnswer | None:
        """Return what Prometheus answers; None = no settings say where it is, and the cluster has none."""
        url = ""
        if config_map:
            path = f"/api/v1/namespaces/{self.namespace}/configmaps/{config_map}"
            url = self._object(path, api_objects.store_url_of) or ""
        url = url or self.settings.prometheus.url or self.find_store()
        return ask_store(self.api, url, _SECONDS) if url else None

    def _last_line(self, job: NightlyJob, facts: Facts) -> str:
        """Return the last line of the log of its last pod; '' = that is gone."""
        pods = [pod for pod in facts.pods if pod.job == job.name]
        if not pods:
            return ""
        newest = max(pods, key=lambda pod: pod.created)
        asked = urlencode({"tailLines": 1, "limitBytes": _LINE_BYTES})
        path = f"/api/v1/namespaces/{self.namespace}/pods/{newest.name}/log?{asked}"
        text = self._object(path, lambda body: body.decode(errors="replace")) or ""
        return " ".join(text.split()).removeprefix("forecast-scheduler: ")


def _with_last_line(nightly: Nightly | None, job: NightlyJob, line: str) -> Nightly | None:
    if nightly is None:
        return None
    return replace(nightly, jobs=tuple(replace(one, last_line=line) if one is job else one for one in nightly.jobs))
