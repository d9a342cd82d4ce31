"""Which pods come together: a group is what starts them again and again, whatever it calls each time.

    shop/Job/load        load-28391040, load-20261122t0800, load-x7k2p
    shop/Workflow/nightly  nightly-1795334400, whose pods it owns
    shop/DAG/prices      pods of Airflow without an owner, by their label dag_id
    shop/Pod/resize      other pods without an owner

Pure, and a guess: parts of a name that look generated are left out, wherever they are.
"""

from __future__ import annotations

import re
from typing import Final

from kube.objects.objects import PodInfo

_DAG_LABEL: Final = "dag_id"
"""https://airflow.apache.org/docs/apache-airflow-providers-cncf-kubernetes/stable/operators.html"""

_LONGEST: Final = 253
_UUID: Final = re.compile(r"(?<![0-9a-z])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-z])")
_PARTS: Final = re.compile(r"[-._]+")

_GENERATED: Final = re.compile(
    r"""  \d[\dtz]*                               # numbers, dates and times
        | [bcdfghjklmnpqrstvwxz2456789]{5}        # generateName: rand.String(5) of k8s.io/apimachinery
        | (?=[a-f]*\d)[0-9a-f]{7,}                # hashes
        | (?=[a-z0-9]*\d[a-z])[a-z0-9]{8,}        # letters and digits mixed, as Airflow adds them; not version2024
    """,
    re.VERBOSE,
)


def group_of(pod: PodInfo) -> str:
    """namespace/kind/name of what the pod comes with."""
    dag = pod.labels.get(_DAG_LABEL)
    if not pod.owner.kind and dag:
        return f"{pod.namespace}/DAG/{dag[:_LONGEST]}"
    return group_named(pod.namespace, pod.owner.kind or "Pod", pod.owner.name or pod.name)


def group_named(namespace: str, kind: str, name: str) -> str:
    """The same of an object of this kind and name."""
    parts = _PARTS.split(_UUID.sub("", name[:_LONGEST]))
    kept = [part for part in parts if part and not _GENERATED.fullmatch(part)]
    return f"{namespace}/{kind}/{'-'.join(kept or parts[:1])}"
