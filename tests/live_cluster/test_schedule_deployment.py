"""What deploy/ has for our loops: examples that can be read, and a configuration that keeps kube-scheduler off the
nodes of our domain."""

from __future__ import annotations

from forecast_scheduler.settings.document import load_settings
from kube.decoding.decoding import decode_pod
from placement.devices.device_demand import demand_mistake, gpu_demand
from placement.filters.domain import DOMAIN_LABEL
from placement.node_rule_settings import DeviceOptions
from profiles.gpu.tide.training_annotations import training_terms
from profiles.job.job_annotations import Place, terms_of
from testing.processes.shipped_schedule import documents
from testing.servers.cluster_objects import ClusterWriter, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.waiting import eventually


def test_the_example_gpus_say_nothing_that_cannot_be_read() -> None:
    workloads = [one for one in documents("examples/gpus.yaml") if "template" in one.get("spec", {})]
    asked = {}
    for one in workloads:
        template = one["spec"]["template"]
        assert template["spec"]["schedulerName"] == load_settings(None, {}).schedule.gpu.scheduler_name
        made = {"metadata": {"name": "made", "namespace": "default", "uid": "1"} | template["metadata"]}
        pod_made = decode_pod(made | {"spec": template["spec"]})
        assert demand_mistake(pod_made, DeviceOptions()) == ""
        demand = gpu_demand(pod_made, DeviceOptions())
        asked[one["metadata"]["name"]] = None if demand is None else (demand.count, demand.milli)
        assert training_terms(pod_made.annotations).mistakes == ""
    assert asked == {"train": (2, 1000), "answer": (1, 500), "thumbnails": None}


def test_the_example_jobs_say_nothing_that_cannot_be_read() -> None:
    """Of pods as their controllers make them."""
    cron_job, job = documents("examples/jobs.yaml")
    for spec in (cron_job["spec"]["jobTemplate"]["spec"], job["spec"]):
        template = spec["template"]
        assert template["spec"]["schedulerName"] == load_settings(None, {}).schedule.job.scheduler_name
        made = {"metadata": {"name": "made", "namespace": "default", "uid": "1"} | template["metadata"]}
        terms = terms_of(decode_pod(made | {"spec": template["spec"]}))
        assert terms.mistakes == () and terms.run_seconds is not None
    assert terms.place is Place.CLUSTER


def test_kube_scheduler_keeps_off_the_nodes_of_the_domain(plane: ControlPlane, writer: ClusterWriter) -> None:
    (configuration,) = documents("kube-scheduler/beside-own-loops.yaml")
    writer.create(node("ours", labels={DOMAIN_LABEL: "forecast-scheduler"}))
    with KubeScheduler(plane, profiles=configuration["profiles"]) as scheduler:
        writer.create(pod("plain"))
        writer.create(pod("daemon", scheduler_name="daemons"))

        def node_of(name: str) -> str:
            found = [one for one in writer.list_all("pods") if one["metadata"]["name"] == name]
            return str(found[0]["spec"].get("nodeName", ""))

        def told() -> str:
            found = [one for one in writer.list_all("pods") if one["metadata"]["name"] == "plain"]
            return str([one.get("message", "") for one in found[0]["status"].get("conditions", [])])

        assert eventually(lambda: node_of("daemon") == "ours"), scheduler.end_of_log()
        assert eventually(lambda: "scheduler-enforced node affinity" in told()), scheduler.end_of_log()
        writer.create(node("theirs"))
        assert eventually(lambda: node_of("plain") == "theirs"), scheduler.end_of_log()
