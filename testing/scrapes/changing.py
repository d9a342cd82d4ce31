"""Functions from the series of a scrape to others, and what they are put together from. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from base.arrays import Floats, Ints
from testing.servers.openmetrics import MetricSeries

Series = Sequence[MetricSeries]
Change = Callable[[Series], Series]
Match = Callable[[MetricSeries], bool]
Labels = Callable[[dict[str, str]], Mapping[str, str]]

CADVISOR, STATE, NODE_EXPORTER = "container_.*", "kube_.*", "node_.*"
HALF = re.compile(r"node-[456]|10\.0\.0\.1[456](:[0-9]+)?")


def where(names: str, **labels: str) -> Match:
    """Match series by regular expressions of the whole name and of labels; a label that is absent is empty."""
    name = re.compile(names)
    wanted = {label: re.compile(pattern) for label, pattern in labels.items()}
    return lambda one: bool(
        name.fullmatch(one.name) and all(p.fullmatch(one.labels.get(label, "")) for label, p in wanted.items())
    )


def on_half(names: str, **labels: str) -> Match:
    """Match series of three of the six nodes, by their label node or their instance."""
    match = where(names, **labels)
    return lambda one: match(one) and any(HALF.fullmatch(one.labels.get(label, "")) for label in ("node", "instance"))


def drop(*matches: Match) -> Change:
    """Return a bend that deletes the series that match."""
    return lambda series: [one for one in series if not any(match(one) for match in matches)]


def labelled(match: Match, labels: Labels | None = None, **fixed: str) -> Change:
    """Set labels where a series matches: from the labels it has, and fixed ones; "" deletes one."""

    def change(one: MetricSeries) -> MetricSeries:
        if not match(one):
            return one
        bent = {**one.labels, **(labels(dict(one.labels)) if labels else {}), **fixed}
        return replace(one, labels={name: value for name, value in bent.items() if value})

    return lambda series: [change(one) for one in series]


def moved(match: Match, **names: str) -> Change:
    """Rename labels, new name = old name; "" for the new one is `labelled`."""
    return labelled(
        match,
        lambda labels: {new: labels.get(old, "") for new, old in names.items()} | dict.fromkeys(names.values(), ""),
    )


def renamed(names: Mapping[str, str]) -> Change:
    """Rename metrics; names are regular expressions, the new ones may refer to their groups."""

    def change(one: MetricSeries) -> MetricSeries:
        for pattern, new in names.items():
            if found := re.fullmatch(pattern, one.name):
                return replace(one, name=found.expand(new))
        return one

    return lambda series: [change(one) for one in series]


def valued(match: Match, values: Callable[[Floats, Ints], Floats]) -> Change:
    """Change the values where a series matches: a function of the values and their times."""
    return lambda series: [replace(one, values=values(one.values, one.times)) if match(one) else one for one in series]


def scaled(match: Match, factor: float) -> Change:
    """Return a bend that multiplies the values of the series that match."""
    return valued(match, lambda values, times: values * factor)


def as_gauge(match: Match) -> Change:
    """The rate itself, where a counter belongs."""
    return valued(
        match, lambda values, times: np.full(len(values), round((values[-1] - values[0]) / (times[-1] - times[0]), 9))
    )


def kept(match: Match, times: Callable[[Ints], np.ndarray]) -> Change:
    """Only the samples at some times of what matches; `times` tells which, (n,) bool."""

    def change(one: MetricSeries) -> MetricSeries:
        if not match(one):
            return one
        there = times(one.times)
        return replace(one, times=one.times[there], values=one.values[there])

    return lambda series: [change(one) for one in series]


def also(match: Match, *changes: Change) -> Change:
    """What matches once more, changed, in addition to what is there."""
    return lambda series: [*series, *then(*changes)([one for one in series if match(one)])]


def then(*changes: Change) -> Change:
    """One change after the other."""

    def change(series: Series) -> Series:
        for one in changes:
            series = one(series)
        return series

    return change


def added(make: Callable[[Series], Iterable[MetricSeries]]) -> Change:
    """Series made from those that are there."""
    return lambda series: [*series, *make(series)]


def parts(match: Match, label: str, shares: Mapping[str, float]) -> Change:
    """Each matching series in parts: the label's value -> share of the values."""

    def change(series: Series) -> Series:
        out: list[MetricSeries] = []
        for one in series:
            if not match(one):
                out.append(one)
                continue
            for value, share in shares.items():
                out.append(replace(one, labels={**one.labels, label: value}, values=one.values * share))
        return out

    return change


def summed(match: Match, by: Sequence[str], name: str, **labels: str) -> Change:
    """Add series that are sums of those that match, under another name and with the labels `by` only."""

    def change(series: Series) -> Series:
        sums: dict[tuple[str, ...], MetricSeries] = {}
        for one in filter(match, series):
            key = tuple(one.labels.get(label, "") for label in by)
            new = {label: value for label, value in zip(by, key, strict=True) if value} | labels
            had = sums.get(key)
            sums[key] = MetricSeries(name, new, one.times, one.values + (had.values if had else 0.0))
        return [*series, *sums.values()]

    return change


def host(labels: Mapping[str, str]) -> str:
    """instance without its port."""
    return labels["instance"].rpartition(":")[0]
