"""Which node each entry point names for a pod that waits, and the predicted peak of that node with the pod on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.service.app import create_app as extender_app
from forecast_scheduler.commands.explain.explain_pod import open_explaining
from forecast_scheduler.commands.explain.placing_component import component_of
from forecast_scheduler.commands.extender.setup import open_extender
from forecast_scheduler.commands.live_placing import open_placing
from forecast_scheduler.commands.schedule.dry_run import open_plan
from forecast_scheduler.commands.scorer.setup import Inputs
from forecast_scheduler.settings.document import Settings, load_settings
from kube.decoding.decoding import decode_pod
from kube.tables.cluster_file import read_cluster_file
from placement.feasibility import feasibility
from placement.filters.catalogue import standard_filters
from placement.kube_scheduler_choice import expected_choice
from scorer.background import Background
from scorer.replay.cluster_state import ClusterState, PendingPod
from scorer.replay.curves import at_requests, from_model
from scorer.replay.job_pods import job_pods
from scorer.replay.recording import record
from scorer.replay.rules import ByCurves
from scorer.replay.window import replay_window
from scorer.scorer import Scorer
from scorer.service.app import create_app as scorer_app
from testing.app_client import AppClient
from testing.fitted_models import fitted
from tests.entry_points.night_cluster import MOMENT, NightCluster, Question
from tests.extender.service.questions import nodes_question
from tests.forecast_scheduler.decision_of_cycle import decision_of_cycle
from trainer.history.files import HistoryFiles


@dataclass(frozen=True)
class Answer:
    """
    peak  : what placement weighs: the highest half hour of the coming week with the pod, as a share of the capacity of
            the node's fullest resource; by the tables of the entry point
    shown : the expected peak in an explanation; None = the entry point explains nothing
    """

    node: str
    peak: float
    shown: float | None = None


Ask = Callable[[Question], Answer]


@contextmanager
def by_scorer(world: NightCluster) -> Iterator[Ask]:
    """POST /v1/scores and /v1/explain, about the nodes that the filters of kube-scheduler and the extender leave."""

    def answer(question: Question) -> Answer:
        with open_placing(_settings(world), _inputs(world, question)) as (scorer, background, placing):
            _settle(scorer, background)
            nodes = list(placing.feasibility(decode_pod(question.pod)).nodes)
            with AppClient(scorer_app(scorer)) as client:
                scores = client.post("/v1/scores", json={"pod": question.pod, "nodes": nodes}).json()["scores"]
                node = max(scores, key=scores.__getitem__)
                explained = client.post("/v1/explain", json={"pod": question.pod, "nodes": [node]}).json()
            shown = explained["nodes"][0]["peak_with"]["share"]
            return Answer(node, _peak(scorer, question, node), shown)

    yield answer


@contextmanager
def by_extender(world: NightCluster) -> Iterator[Ask]:
    """POST /filter and /prioritize with the nodes that kube-scheduler's filters leave, and its own scores added."""

    def answer(question: Question) -> Answer:
        with open_extender(_settings(world), _inputs(world, question)) as live:
            scorer, view = live.scorer, live.extender._view
            assert scorer is not None
            _settle(scorer, live.background)
            pod = decode_pod(question.pod)
            with scorer.tables.reading():
                passing = list(feasibility(pod, view, standard_filters()).nodes)
            with AppClient(extender_app(live.extender)) as client:
                kept = client.post("/filter", json=nodes_question(*passing, pod=question.pod)).json()["NodeNames"]
                found = client.post("/prioritize", json=nodes_question(*kept, pod=question.pod)).json()
            points_of = {one["Host"]: one["Score"] for one in found}
            live.extender.settle()
            scorer.tables.forget(pod.uid)  # the extender charged the pod to a node
            with scorer.tables.reading() as tables:
                rows = np.array([tables.state.row_of[name] for name in kept])
                points = np.array([points_of.get(name, 0) for name in kept])
                node = kept[expected_choice(pod, view, rows, points, live.extender.options.answers.weight)]
            return Answer(node, _peak(scorer, question, node))

    yield answer


@contextmanager
def by_explain(world: NightCluster) -> Iterator[Ask]:
    """What `explain` does with the manifest of the pod."""
    objects = read_cluster_file(world.cluster)

    def answer(question: Question) -> Answer:
        pod = decode_pod(question.pod)
        inputs = Inputs(world.cluster, models=str(world.models), at=MOMENT, objects=objects)
        with open_explaining(component_of(pod.scheduler_name, _settings(world)), inputs, objects) as explaining:
            explaining.background.look_for_model()
            found = explaining.explain(pod, None, 3)
            best = found.explanation.nodes[0]
            assert best.node == found.judgement.ranking[0] and best.peak_with is not None
            return Answer(best.node, _peak(explaining.scorer, question, best.node), best.peak_with.share)

    yield answer


@contextmanager
def by_dry_run(world: NightCluster) -> Iterator[Ask]:
    """What `schedule --dry-run` does with the cluster file and the pod among its pods."""

    def answer(question: Question) -> Answer:
        with open_plan(_settings(world), _inputs(world, question)) as (background, decide):
            background.look_for_model()
            (planned,) = decide().planned
        assert planned.peak_share is not None
        return Answer(planned.node, planned.peak_share)

    yield answer


@contextmanager
def by_online_profile(world: NightCluster) -> Iterator[Ask]:
    """The cycle of the loop that `schedule --profile online,job` runs."""
    settings = _settings(world)

    def answer(question: Question) -> Answer:
        node, peak = decision_of_cycle(world.with_pod(question), world.models, MOMENT, settings, question.name)
        assert node is not None and peak is not None
        return Answer(node, peak)

    yield answer


@contextmanager
def by_replay(world: NightCluster) -> Iterator[Ask]:
    """The rule `forecast` of `replay` once the pods of the cluster file are where the file has them.

    A history holds neither labels nor taints, so the rule may choose among the nodes that the filters leave.
    """
    files = HistoryFiles.open(world.recorded)
    history = files.history()
    window = replay_window(history, MOMENT, 7)
    pods = files.pod_usage(window.days[0], window.days[-1])
    recording = record(history, pods, window)
    there = np.flatnonzero((window.cut(pods.present) > 0).any(axis=1))
    index_of = {pods.pods[pod].rpartition("/")[2]: index for index, pod in enumerate(there.tolist())}
    names = [history.nodes[node] for node in recording.nodes.tolist()]
    sits_on = {
        index_of[one["metadata"]["name"]]: names.index(one["spec"]["nodeName"])
        for one in world.objects
        if one["kind"] == "Pod"
    }
    model = fitted(history.before(window.first_day))

    def pending(index: int) -> PendingPod:
        service = int(recording.service[index])
        return PendingPod(service, recording.requests[index], recording.live[index], index)

    def answer(question: Question) -> Answer:
        asked = pending(index_of[question.name])
        sitting = np.array([*sits_on, asked.index])
        replicas = np.bincount(recording.service[sitting], minlength=recording.n_services).astype(np.float64)
        forecast = at_requests(from_model(model, window, replicas), model, window, recording.first_requests())
        forecast = forecast.on_nodes(recording.nodes)
        rule = ByCurves(forecast, recording.capacity, jobs=job_pods(recording, forecast.run_seconds))
        requests = recording.service_requests
        state = ClusterState(recording.capacity, recording.allocatable, recording.live_base, requests)
        for index, node in sits_on.items():
            state.add(pending(index), node)
        rule.observe(0, state)
        for index, node in sits_on.items():
            rule.added(pending(index), node)
        with open_placing(_settings(world), _inputs(world, question)) as (_, _, placing):
            feasible = np.isin(names, placing.feasibility(decode_pod(question.pod)).nodes)
        row = rule.choose(asked, feasible, state)
        return Answer(names[row], rule.peak_share(asked, row))

    yield answer


ENTRY_POINTS: Final[Mapping[str, Callable[[NightCluster], AbstractContextManager[Ask]]]] = {
    "scorer": by_scorer,
    "extender": by_extender,
    "explain": by_explain,
    "dry run": by_dry_run,
    "online profile": by_online_profile,
    "replay": by_replay,
}


def _settings(world: NightCluster) -> Settings:
    return load_settings(world.settings, {})


def _inputs(world: NightCluster, question: Question) -> Inputs:
    """The cluster file with the pod among its pods."""
    return Inputs(world.with_pod(question), models=str(world.models), at=MOMENT)


def _settle(scorer: Scorer, background: Background) -> None:
    """Read the model, and let the time of the world begin."""
    background.wait_synced(10)
    background.look_for_model()
    scorer.tables.tick()


def _peak(scorer: Scorer, question: Question, node: str) -> float:
    """By the tables of a scorer."""
    share = scorer.peak_share(decode_pod(question.pod), node)
    assert share is not None
    return share
