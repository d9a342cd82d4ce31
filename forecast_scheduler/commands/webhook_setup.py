"""A webhook put together from settings: templates to follow, certificates to show, statuses to write."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from kubernetes.client import ApiClient
from prometheus_client.registry import Collector

from admission.advice.advisor_client import PreferencesOfAdvisor
from admission.advice.advisor_lease import LOOK_SECONDS, AdvisorLease
from admission.advice.asked_advice import ByPolicy, NewPod
from admission.advice.holding import Holding
from admission.advice.quota_namespaces import QuotaNamespaces
from admission.advice.second_hands import KEEP_UP_SECONDS, HoldingTimes, SecondHands
from admission.certificates.managed_certificates import CertificateCollector, open_certificates
from admission.webhook.binding_status_writer import StatusWriter
from admission.webhook.binding_statuses import LastErrors
from admission.webhook.recorded_pods import POD_RECORDS, RecordedPods
from admission.webhook.review_answers import AskOf, Reviewer, asks
from admission.webhook.template_store import WEBHOOK_TIMING, TemplateStore, watchers
from admission.webhook.webhook_app import create_app
from admission.webhook_settings import AdviceGateOptions, WebhookOptions
from base.errors import InputError
from base.excluded import ExcludedOptions
from base.periodic_task import PeriodicTask
from forecast_scheduler.commands.serving_access import check_exposed, hosts_of, kubernetes_access
from kube.client.cluster_access import ClusterAccess
from kube.client.kubernetes_client import check_access
from kube.client.kubernetes_source import ResourceSource
from kube.client.kubernetes_watcher import ResourceWatcher
from kube.client.right_to_patch_pods import LOOK_SECONDS as RIGHT_SECONDS
from kube.client.right_to_patch_pods import RightToPatchPods
from kube.decoding.decoding import Kind
from kube.session.api_session import ApiSession
from placement.gate_exemptions import AdviceMode
from placement.gate_removal import UNBOUND_PODS
from serving.server_settings import ServerOptions
from serving.tls import CertificateFiles
from tenants.elastic_quota import WATCHED_QUOTAS

if TYPE_CHECKING:  # they bring the loops and the scores, which only a webhook with policies needs
    from advisor.advice_settings import AdviseOptions
    from forecast_scheduler.commands.policy.followed_policies import LivePolicies

_STATUS_SECONDS = 1.0
_RELEASE_CONNECTIONS = 64
_SILENT_SECONDS = 150.0
_FREEZE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class LiveWebhook:
    """The application, and where to serve it."""

    app: FastAPI
    server: ServerOptions


@contextmanager
def open_webhook(
    settings: WebhookOptions,
    advise: AdviseOptions,
    excluded: ExcludedOptions,
    access: ClusterAccess,
    policies: LivePolicies | None = None,
) -> Iterator[LiveWebhook]:
    """A webhook that follows its API server while the context lasts.

    advise     : how long the advisors may hold pods, whether they heed quotas, and the name of their Lease
    policies   : that may say which pods are advised on; None = there are none
    excluded   : services whose pods get no advice
    Raises InputError: no certificate, or two; an API server that refuses.
    """
    _check(settings)
    api = access.client()
    check_access(api, (Kind.NAMESPACES, Kind.PODS) if settings.statuses else (Kind.NAMESPACES,))
    with ExitStack() as stack:
        store, errors = TemplateStore(), LastErrors()
        source = ResourceSource(watchers(api, store))
        store.follow(lambda: source.synced, _freezing())
        store.start()
        stack.callback(store.stop)
        source.start()
        stack.callback(source.stop)
        if settings.statuses:
            _write_statuses(api, store, errors, stack)
        server, collectors = _server(settings, api, stack)
        if policies is not None:
            policies.provider.read_labels_with(store.namespaces.labels_of)
            collectors = (*collectors, policies.collector)
        by_policy = _nothing if policies is None else policies.provider.advice
        reviewer = Reviewer(store, errors)
        abilities: Callable[[], Mapping[str, Any]] = dict
        if settings.advice.enabled:
            holding, ask_of, of_advice = _advice(settings.advice, advise, api, stack, by_policy, excluded)
            reviewer, abilities = Reviewer(store, errors, gates_of=holding, ask_of=ask_of), holding.abilities
            collectors = (*collectors, *of_advice)
        app = create_app(
            reviewer.begin,
            store,
            settings,
            access=kubernetes_access(settings.serving, access),
            collectors=collectors,
            hosts=hosts_of(settings.serving),
            abilities=abilities,
        )
        yield LiveWebhook(app, server)


def _nothing(pod: NewPod) -> AdviceMode | None:
    """Without policies none says anything of advice."""
    return None


def _advice(
    options: AdviceGateOptions,
    advise: AdviseOptions,
    api: ApiClient,
    stack: ExitStack,
    by_policy: ByPolicy,
    excluded: ExcludedOptions,
) -> tuple[Holding, AskOf, tuple[Collector, ...]]:
    """Return what holds pods for the advisor, about which pods it is asked, and the metrics of that."""

    def every(name: str, seconds: float, job: Callable[[], object]) -> None:
        task = PeriodicTask(name, seconds, job)
        task.start()
        stack.callback(task.stop)

    lease = AdvisorLease(api, advise.leader_election, alive_for=options.alive_for)
    right = RightToPatchPods(api, "no new pod is held")
    held, quotas = HoldingTimes(), QuotaNamespaces()
    pods = ResourceSource([ResourceWatcher(api, held, UNBOUND_PODS, timing=WEBHOOK_TIMING)])
    sources = [pods]
    if advise.tenants.enabled:
        sources.append(ResourceSource([ResourceWatcher(api, quotas, WATCHED_QUOTAS, timing=WEBHOOK_TIMING)]))
    session = ApiSession(api, connections=_RELEASE_CONNECTIONS)
    session.start()
    stack.callback(session.stop)
    for source in sources:
        source.start()
        stack.callback(source.stop)
    hands = SecondHands(
        session,
        held,
        lease,
        gate_timeout=advise.gate_timeout,
        is_following=lambda: all(source.synced for source in sources) and _is_fed(pods),
        may_patch=right.is_granted,
        has_quota=quotas.has if advise.tenants.enabled else lambda namespace: False,
    )
    holding = Holding(options, lease, hands, excluded, by_policy)
    every("advisor-lease", LOOK_SECONDS, lease.look)
    # An installation without an advisor gives no such right, and needs none.
    every("right-to-patch-pods", RIGHT_SECONDS, lambda: right.look() if lease.is_known() else None)
    every("release-gates", KEEP_UP_SECONDS, hands.keep_up)
    every("holding", _STATUS_SECONDS, holding.report)
    stack.callback(hands.end)
    collectors = (holding, hands)
    address = options.advisor.address(options.advisor.timeout)
    if address is None:
        return holding, lambda request, pod, labels: None, collectors
    advisor = PreferencesOfAdvisor(address)
    stack.callback(advisor.close)
    return holding, asks(advisor.ask, options, lease.is_alive, excluded, by_policy), (*collectors, advisor)


def _is_fed(pods: ResourceSource) -> bool:
    """Whether the watch is well: bookmarks come about once a minute where nothing changes."""
    return all(
        status.failures == 0 and time.time() - (status.last_contact or 0.0) < _SILENT_SECONDS
        for status in pods.statuses().values()
    )


def _check(settings: WebhookOptions) -> None:
    check_exposed(settings.serving)
    managed = settings.certificates.managed
    for name in ("tls_cert", "tls_key"):
        if managed and getattr(settings.serving, name) is not None:
            raise InputError(
                f"webhook.certificates.managed and webhook.serving.{name} (--{name.replace('_', '-')}) both say which "
                f"certificate to show: leave one of them out, or write webhook.serving.{name}: null where "
                "`serving` has it for the others"
            )
    if not managed and settings.serving.tls_cert is None:
        raise InputError(
            "the API server calls webhooks by HTTPS only, and there is no certificate: pass --tls-cert and --tls-key, "
            "or set webhook.certificates.managed: true and it makes its own (docs/operate/webhook.md)"
        )


def _server(settings: WebhookOptions, api: ApiClient, stack: ExitStack) -> tuple[ServerOptions, tuple[Collector, ...]]:
    """Where to serve and with which certificate, and the metrics of that."""
    if not settings.certificates.managed:
        assert settings.serving.tls_cert is not None  # _check
        collector = CertificateCollector(CertificateFiles(settings.serving.tls_cert, settings.serving.tls_key))
        return settings.serving, (collector,)
    managed = stack.enter_context(open_certificates(settings.certificates, api))
    files = settings.serving.replace(tls_cert=managed.files.certificate, tls_key=managed.files.key)
    return files, (managed.collector,)


def _write_statuses(api: ApiClient, store: TemplateStore, errors: LastErrors, stack: ExitStack) -> None:
    pods = RecordedPods()
    watcher = ResourceWatcher(api, pods, POD_RECORDS, timing=WEBHOOK_TIMING)
    source = ResourceSource([watcher])
    source.start()
    stack.callback(source.stop)
    session = ApiSession(api, connections=1)
    session.start()
    stack.callback(session.stop)
    writer = StatusWriter(session, store, pods, errors, synced=lambda: source.synced)
    every = PeriodicTask("webhook-statuses", _STATUS_SECONDS, writer.step)
    every.start()
    stack.callback(every.stop)


def _freezing() -> Callable[[], None]:
    """What is long-lived by now need not be searched for cycles again: that stops all answers for 0.1 s.

    Not done after every change of a template: what happens to be garbage at that moment stays for ever.
    """
    due = 0.0

    def freeze() -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + _FREEZE_SECONDS
            gc.collect()
            gc.freeze()

    return freeze
