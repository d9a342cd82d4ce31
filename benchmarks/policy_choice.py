"""Microseconds per pod to choose a policy among 10, 100 and 1,000 rules, beside the plain loop over them.

    python -m benchmarks.policy_choice [--rules 10 100 1000] [--pods 2000] [--repeats 7]

The documents: rules by namespace and label, by labels of namespaces, and three of which none holds for any pod, so that
a loop has to try them to the end: rules of all sorts, rules that need a label that hardly any pod has, and rules that
only say what must not be there. Also the first pod of each namespace, and what a reload of the document costs, in its
thread and for readers.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import yaml

from benchmarks.harness import command_line
from kube.objects.objects import PodInfo
from placement.policies.compiling import PolicyDefaults
from placement.policies.policy import POLICY_ANNOTATION
from placement.policies.provider import PolicyProvider
from placement.policies.rules import LabelsOf
from testing.objects import pod_info

N_POLICIES = 20
N_NAMESPACES = 200
N_TEAMS = 50

Rule = dict[str, Any]


def by_namespace_and_label(number: int) -> Rule:
    """Five services of a namespace."""
    return {"namespaces": [f"ns-{number % N_NAMESPACES}"], "selector": {"matchLabels": {"app": f"app-{number // 5}"}}}


def by_labels_of_namespaces(number: int) -> Rule:
    """A team's services of one tier."""
    return {
        "namespace_selector": {"matchLabels": {"team": f"team-{number % N_TEAMS}"}},
        "selector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": [f"tier-{number // N_TEAMS}"]}]},
    }


def of_all_sorts(number: int) -> Rule:
    """Of which none holds for any pod here."""
    kinds: tuple[Rule, ...] = (
        {"namespaces": [f"elsewhere-{number}"]},
        {"selector": {"matchLabels": {"app": f"no-{number}", "env": "prod"}}},
        {"selector": {"matchExpressions": [{"key": f"label-{number}", "operator": "Exists"}]}},
        {"namespace_selector": {"matchLabels": {"team": f"no-{number}"}}, "selector": {"matchLabels": {"env": "prod"}}},
    )
    return kinds[number % len(kinds)]


def by_a_rare_label(number: int) -> Rule:
    """What nearly every pod has, and a label that hardly any has."""
    expressions = [
        {"key": "env", "operator": "In", "values": ["prod"]},
        {"key": f"label-{number}", "operator": "Exists"},
    ]
    return {"selector": {"matchExpressions": expressions}}


def by_what_is_not_there(number: int) -> Rule:
    """Which is there in all pods."""
    expressions = [
        {"key": "env" if number % 2 else "tier", "operator": "DoesNotExist"},
        {"key": f"label-{number}", "operator": "NotIn", "values": ["off"]},
    ]
    return {"selector": {"matchExpressions": expressions}}


CASES: dict[str, Callable[[int], Rule]] = {
    "namespace and label": by_namespace_and_label,
    "labels of namespaces": by_labels_of_namespaces,
    "none holds": of_all_sorts,
    "rare labels": by_a_rare_label,
    "labels not there": by_what_is_not_there,
}


def document(rule: Callable[[int], Rule], n_rules: int) -> str:
    """As it would be in a ConfigMap."""
    policies = {
        f"policy-{n}": {"scores": {"weights": {"predicted_peak": 1, "qos_balance": 0.5}}, "highest_peaks": {"cpu": 0.8}}
        for n in range(N_POLICIES)
    }
    rules = [{"policy": f"policy-{n % N_POLICIES}"} | rule(n) for n in range(n_rules)]
    return yaml.safe_dump({"policies": policies, "rules": rules})


def pods(count: int, rng: random.Random) -> list[PodInfo]:
    """With the labels that charts give them."""
    return [pod(number, rng) for number in range(count)]


def pod(number: int, rng: random.Random, annotations: Mapping[str, str] | None = None) -> PodInfo:
    """One of them."""
    app = f"app-{rng.randrange(200)}"
    return pod_info(
        f"{app}-{number}",
        uid=f"uid-{number}",
        namespace=f"ns-{rng.randrange(N_NAMESPACES)}",
        labels={
            "app": app,
            "env": "prod",
            "tier": f"tier-{rng.randrange(20)}",
            "version": "v1",
            "pod-template-hash": f"{number:x}",
            "app.kubernetes.io/name": app,
            "app.kubernetes.io/managed-by": "Helm",
            "helm.sh/chart": "web-1.2.3",
        },
        annotations=annotations or {},
    )


def main() -> None:
    """Print the figures."""
    parser = command_line(__doc__)
    parser.add_argument("--rules", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    asked = pods(arguments.pods, random.Random(0))
    teams = {f"ns-{n}": {"team": f"team-{n % N_TEAMS}"} for n in range(N_NAMESPACES)}
    print(f"{'microseconds per pod':28}{'rules':>8}{'median':>10}{'p99':>10}{'the loop':>10}{'speedup':>10}")
    for name, rule in CASES.items():
        for n_rules in arguments.rules:
            provider = _provider(document(rule, n_rules), teams.get)
            median, p99 = _choosing(provider, asked, arguments.repeats)
            slow = _looping(provider, asked, teams.get)
            print(f"{name:28}{n_rules:8}{median:10.2f}{p99:10.2f}{slow:10.1f}{slow / median:9.0f}x")
    for n_rules in arguments.rules:
        median, p99 = _cold(document(by_labels_of_namespaces, n_rules), teams, arguments.repeats)
        print(f"{'first pod of a namespace':28}{n_rules:8}{median:10.2f}{p99:10.2f}")
    provider = _provider(document(by_namespace_and_label, max(arguments.rules)), teams.get)
    rng = random.Random(1)
    named = [pod(n, rng, {POLICY_ANNOTATION: f"policy-{n % N_POLICIES}"}) for n in range(arguments.pods)]
    median, p99 = _choosing(provider, named, arguments.repeats)
    print(f"{'by annotation':28}{max(arguments.rules):8}{median:10.2f}{p99:10.2f}")
    for n_rules in arguments.rules:
        text = document(by_namespace_and_label, n_rules)
        seconds, meanwhile, without = _reloading(text, teams.get, asked[0], arguments.repeats)
        print(
            f"reload, {n_rules} rules: {1e3 * seconds:.0f} ms; the longest choice meanwhile "
            f"{1e3 * meanwhile:.1f} ms, without {1e3 * without:.1f} ms"
        )


def _provider(text: str, labels_of: LabelsOf) -> PolicyProvider:
    provider = PolicyProvider(PolicyDefaults())
    provider.read_labels_with(labels_of)
    if (outcome := provider.offer(text)) is None or provider.status.refusal is not None:
        raise SystemExit(f"the document was refused: {outcome}")
    return provider


def _choosing(provider: PolicyProvider, asked: Sequence[PodInfo], repeats: int) -> tuple[float, float]:
    """Microseconds: median over the runs of the mean, and the 99th percentile of single choices in the last run."""
    means = []
    for _ in range(repeats):
        began = time.perf_counter()
        for one in asked:
            provider.choose(one)
        means.append((time.perf_counter() - began) / len(asked))
    single = []
    for one in asked:
        began = time.perf_counter()
        provider.choose(one)
        single.append(time.perf_counter() - began)
    return 1e6 * float(np.median(means)), 1e6 * float(np.quantile(single, 0.99))


def _cold(text: str, labels: Mapping[str, Mapping[str, str]], repeats: int) -> tuple[float, float]:
    """Microseconds of the first choice in each namespace: median and 99th percentile."""
    rng, single = random.Random(2), []
    for _ in range(repeats):
        provider = _provider(text, labels.get)
        provider.choose(replace(pod(0, rng), namespace="elsewhere"))  # the first of all
        for number, namespace in enumerate(labels):
            asked = replace(pod(number, rng), namespace=namespace)
            began = time.perf_counter()
            provider.choose(asked)
            single.append(time.perf_counter() - began)
    return 1e6 * float(np.median(single)), 1e6 * float(np.quantile(single, 0.99))


def _looping(provider: PolicyProvider, asked: Sequence[PodInfo], labels_of: LabelsOf) -> float:
    """Microseconds per pod of the plain loop, which also has to come to the same answer."""
    rules = provider.policies.rules
    few = asked[:: max(1, len(asked) // 200)]
    began = time.perf_counter()
    found = [next((rule for rule in rules if rule.holds(one, labels_of)), None) for one in few]
    seconds = time.perf_counter() - began
    for one, rule in zip(few, found, strict=True):
        chosen = provider.choose(one).policy.name
        if chosen != ("settings" if rule is None else rule.policy):
            raise SystemExit(f"the index chose {chosen} for {one.name}, the loop {rule}")
    return 1e6 * seconds / len(few)


def _reloading(text: str, labels_of: LabelsOf, asked: PodInfo, repeats: int) -> tuple[float, float, float]:
    """Seconds: median of reloads, and the longest choice that another thread met while they went on, and without."""
    provider = _provider("policies: {}", labels_of)
    times = []

    def reload() -> None:
        for turn in range(repeats):
            began = time.perf_counter()
            provider.offer(f"{text}# {turn}")
            times.append(time.perf_counter() - began)

    meanwhile = _longest_choice(provider, asked, reload)
    return float(np.median(times)), meanwhile, _longest_choice(provider, asked, lambda: time.sleep(sum(times)))


def _longest_choice(provider: PolicyProvider, asked: PodInfo, act: Callable[[], None]) -> float:
    """Seconds that another thread, which rests between them as a server does, waited for a choice beyond its rest."""
    longest, done, rest = 0.0, threading.Event(), 0.001

    def choose() -> None:
        nonlocal longest
        began = time.perf_counter()
        while not done.wait(rest):
            provider.choose(asked)
            longest = max(longest, time.perf_counter() - began - rest)
            began = time.perf_counter()

    reader = threading.Thread(target=choose)
    reader.start()
    act()
    done.set()
    reader.join()
    return longest


if __name__ == "__main__":
    main()
