"""All entry points name the same node for the same pod, and predict the same peak there.

Nodes differ by more than kube-scheduler's own scores, which the extender and the loops add, so the forecast decides.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.entry_points.answers import ENTRY_POINTS, Answer
from tests.entry_points.night_cluster import NightCluster, Question, night_cluster

Answers = dict[str, list[Answer]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NightCluster:
    return night_cluster(tmp_path_factory.mktemp("night"))


@pytest.fixture(scope="module")
def answers(world: NightCluster) -> Answers:
    """By entry point, in the order of the questions."""
    found = {}
    for name, entry_point in ENTRY_POINTS.items():
        with entry_point(world) as ask:
            found[name] = [ask(question) for question in world.questions]
    return found


def _different(world: NightCluster, answers: Answers) -> list[tuple[Question, dict[str, Answer]]]:
    """Questions that entry points answer with different nodes."""
    by_question = [
        (question, {name: of[number] for name, of in answers.items()})
        for number, question in enumerate(world.questions)
    ]
    return [(asked, of) for asked, of in by_question if len({answer.node for answer in of.values()}) > 1]


def test_fifty_pods_get_the_same_node_from_every_entry_point(world: NightCluster, answers: Answers) -> None:
    assert len(world.questions) == 50
    assert _different(world, answers) == []


def test_every_entry_point_predicts_the_same_peak_there(world: NightCluster, answers: Answers) -> None:
    for number, question in enumerate(world.questions):
        peaks = {name: of[number].peak for name, of in answers.items()}
        assert peaks == pytest.approx(dict.fromkeys(peaks, peaks["scorer"]), rel=0.01), question.name
        shown = [of[number].shown for of in answers.values() if of[number].shown is not None]
        assert shown == pytest.approx([shown[0]] * 2, rel=0.01), question.name


def test_the_questions_are_answered_with_nodes_of_several_kinds(answers: Answers) -> None:
    nodes = Counter(answer.node for answer in answers["scorer"])
    assert nodes["gpu"] > 0 and len(nodes) >= 4
    assert not {"virtual", "private-0", "private-1"} & set(nodes)


def test_pods_of_jobs_do_not_keep_evening_services_off_their_nodes(world: NightCluster, answers: Answers) -> None:
    """Pods of CronJobs run on shared-6 until 05:00. If they counted at 20:00, too, shared-1 would peak lower."""
    number = [question.hosts for question in world.questions].index(("shared-6", "shared-1"))
    assert world.questions[number].service.startswith("Deployment/")
    assert {name: of[number].node for name, of in answers.items()} == dict.fromkeys(answers, "shared-6")
