"""What kubelets say, in the words of real ones."""

from __future__ import annotations

import pytest

from trainer.sampling.readings import NODE, Measured, UnreadableText, of_pods, read_resource_metrics

_NOW = 1_750_705_780.0

_EKS = """\
# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="kube-proxy",namespace="kube-system",pod="kube-proxy-t748f"} 27.787800906 1750705772883
container_cpu_usage_seconds_total{container="liveness-probe",namespace="kube-system",pod="ebs-csi-node-v6cqf"} 23.290713446 1750705776426
container_cpu_usage_seconds_total{container="node-driver-registrar",namespace="kube-system",pod="ebs-csi-node-v6cqf"} 18.065376218 1750705777295
# HELP container_memory_working_set_bytes [STABLE] Current working set of the container in bytes
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="kube-proxy",namespace="kube-system",pod="kube-proxy-t748f"} 1.7391616e+07 1750705768415
# HELP container_start_time_seconds [STABLE] Start time of the container since unix epoch in seconds
# TYPE container_start_time_seconds gauge
container_start_time_seconds{container="server",namespace="acme-core",pod="acme-hub-server-78554c56f7-klmrl"} 1.7506079118916554e+09
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total 6197.005020909 1750705774670
# TYPE node_memory_working_set_bytes gauge
node_memory_working_set_bytes 1.137475584e+09 1750705774670
# TYPE pod_cpu_usage_seconds_total counter
pod_cpu_usage_seconds_total{namespace="acme-core",pod="acme-hub-postgresql-0"} 753.978995701 1750705767087
# TYPE pod_memory_working_set_bytes gauge
pod_memory_working_set_bytes{namespace="acme-core",pod="acme-hub-postgresql-0"} 4.5621248e+07 1750705767087
# TYPE pod_swap_usage_bytes gauge
pod_swap_usage_bytes{namespace="acme-core",pod="acme-hub-postgresql-0"} 0 1750705767087
# TYPE resource_scrape_error gauge
resource_scrape_error 0
"""  # noqa: E501 - as an EKS node of Kubernetes 1.29 answers


def test_a_kubelet_of_a_cloud_is_read_with_its_own_times() -> None:
    reading = read_resource_metrics(_EKS, _NOW)
    assert reading.cpu_seconds[NODE] == Measured(6197.005020909, 1750705774.670)
    assert reading.memory["acme-core", "acme-hub-postgresql-0", ""] == Measured(4.5621248e7, 1750705767.087)
    sums = of_pods({series: measured.value for series, measured in reading.cpu_seconds.items()})
    assert sums["kube-system", "ebs-csi-node-v6cqf"] == pytest.approx(23.290713446 + 18.065376218)
    assert sums["acme-core", "acme-hub-postgresql-0"] == pytest.approx(753.978995701)
    assert len(sums) == 3


def test_without_times_or_with_those_of_a_wrong_clock_the_moment_of_asking_counts() -> None:
    bare = "node_cpu_usage_seconds_total 5\nnode_memory_working_set_bytes 7 1750609999000\n"
    reading = read_resource_metrics(bare, _NOW)
    assert reading.cpu_seconds[NODE] == Measured(5.0, _NOW)
    assert reading.memory[NODE] == Measured(7.0, _NOW)


def test_the_pod_as_a_whole_does_not_count_beside_its_containers() -> None:
    assert of_pods({("a", "p", ""): 9.0, ("a", "p", "x"): 2.0, ("a", "p", "y"): 3.0}) == {("a", "p"): 5.0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<html>no</html>", "no node_cpu"),
        ("node_cpu_usage_seconds_total many\n", "no text of metrics"),
        ('node_cpu_usage_seconds_total 1\npod_cpu_usage_seconds_total{pod="x"} 1\n', "has the labels pod"),
        ("node_cpu_usage_seconds_total -1\n", "no node_cpu"),
        ("node_cpu_usage_seconds_total NaN\n", "no node_cpu"),
        ('container_cpu_usage_seconds_total{namespace="a\n', "no text of metrics"),
    ],
)
def test_what_is_no_answer_of_a_kubelet_is_refused(text: str, words: str) -> None:
    with pytest.raises(UnreadableText, match=words):
        read_resource_metrics(text, _NOW)
