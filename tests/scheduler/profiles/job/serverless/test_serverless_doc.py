"""docs/use/jobs.md names what there is."""

from __future__ import annotations

from pathlib import Path

from placement.virtual_nodes.options import PROVIDER_TAINT
from scheduler.profiles.job.job_annotations import PLACE_ANNOTATION
from scheduler.profiles.job.serverless.metrics import ServerlessCollector
from scheduler.profiles.job.serverless.pod_start_state import Failure
from scheduler.profiles.job.serverless.pod_takeback import TakebackOutcome
from tests.scheduler.profiles.job.serverless.providers_world import World

DOC = (Path(__file__).parents[5] / "docs" / "use" / "jobs.md").read_text()


def test_every_metric_is_listed() -> None:
    for family in ServerlessCollector(World([]).tables, None).collect():
        assert f"`{family.name}{'_total' if family.type == 'counter' else ''}`" in DOC
    for word in (*Failure, *TakebackOutcome, "taken_back_total"):
        assert (word if isinstance(word, str) else f"`{word.value}`") in DOC


def test_names_that_people_write_are_those_of_the_code() -> None:
    assert PLACE_ANNOTATION in DOC and PROVIDER_TAINT in DOC
