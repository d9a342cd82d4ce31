"""A model and the pods on the nodes, read together: the predicted load of every node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import NodeLoad, node_load, peak_at, required_z
from forecast.history import History, Placements
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.resources import RESOURCES


def node_forecast(
    model: PeakModel, placements: Placements, days: tuple[date, ...], current_replicas: AnyFloats | None = None
) -> list[NodeLoad]:
    """Predicted load per resource, in the order of RESOURCES, each (n_nodes, n_days * 48).

    placements       : who sits where, in slots from midnight of days[0]; its indices are the model's. Pods of groups
                       of one-off owners are not added: what they bring is in the base of the nodes
    current_replicas : (n_services,) pods that serve now; None = as many as at the cut-off
    """
    n_services, n_nodes, n_slots = len(model.services), len(model.nodes), len(days) * SLOTS_PER_DAY
    placements = placements.of(~np.array([service.is_group for service in model.services], dtype=np.bool_))
    share = model.load_share(model.reference_replicas if current_replicas is None else current_replicas)[..., None]
    usage = model.usage_on_node(days, share[..., 0]).reshape(n_services, len(RESOURCES), n_slots)
    felt = model.correction[..., None] * share
    own = np.tile((model.own_std * felt) ** 2, (1, 1, len(days)))
    shared = np.tile((model.shared_std * felt) ** 2, (1, 1, len(days)))
    base = model.base(days).reshape(n_nodes, len(RESOURCES), n_slots)
    base_variance = np.tile(model.node_base_std.astype(np.float64) ** 2, (1, 1, len(days)))
    return [
        node_load(
            placements,
            usage[:, r],
            own[:, r],
            shared[:, r],
            base[:, r],
            base_variance[:, r],
            float(model.cluster_std[r]),
        )
        for r in range(len(RESOURCES))
    ]


def rows_among(wanted: Sequence[object], names: Sequence[object]) -> Ints:
    """Where each of `wanted` stands among `names`, -1 = nowhere."""
    row = {name: index for index, name in enumerate(names)}
    return np.array([row.get(name, -1) for name in wanted], dtype=np.int64)


def known_runs(runs: Placements, service: Ints, node: Ints) -> Placements:
    """The runs of services and on nodes that a model knows, by its own indices.

    service, node : for each service and node that the runs count by, its row in the model; -1 = the model has none
    """
    told = (node[runs.node] >= 0) & (service[runs.service] >= 0)
    return Placements(
        runs.pod[told], service[runs.service[told]], node[runs.node[told]], runs.first[told], runs.end[told]
    )


def nodes_understood(model: PeakModel, runs: Placements, service: Ints, node: Ints, day: date) -> Bools:
    """Of which nodes a model can say what they use on a day: (n_nodes, n_resources), by the indices of the runs.

    Not of those that it does not know, nor of those with a pod of a service that it knows no usage of.

    service, node : as in `known_runs`
    """
    understood = np.repeat((node >= 0)[:, None], len(RESOURCES), axis=1)
    finite: Bools = np.all(np.isfinite(model.usage((day,))), axis=(2, 3))  # (n_model_services, n_resources)
    for r in range(len(RESOURCES)):
        # A model that knows nothing of any pod has all of the load in its base.
        with_usage = finite[:, r] if finite[:, r].any() else np.ones(len(finite), dtype=np.bool_)
        unknown = ~np.append(with_usage, False)[service]  # the last one: services it does not know
        understood[runs.node[unknown[runs.service]], r] = False
    return understood


def _loads_of(model: PeakModel, history: History, day: date) -> Iterator[tuple[Bools, NodeLoad]]:
    """Per resource, which of the history's nodes a model says something about on a day, and the load of those.

    It says nothing about nodes that it does not know, nor where a pod of a service sat that it knows no usage of.
    """
    node = rows_among(history.nodes, model.nodes)
    service = rows_among(history.services, model.services)
    begin = history.days.index(day) * SLOTS_PER_DAY
    runs = history.placements.between(begin, begin + SLOTS_PER_DAY)
    understood = nodes_understood(model, runs, service, node, day)
    for r, load in enumerate(node_forecast(model, known_runs(runs, service, node), (day,))):
        rows = node[understood[:, r]]
        yield understood[:, r], NodeLoad(load.mean[rows], load.std[rows])


def node_peaks_of(model: PeakModel, history: History, days: tuple[date, ...]) -> Floats:
    """What a model says about the history's nodes: (n_nodes, n_resources, n_days, n_quantiles), NaN = nothing."""
    peaks = np.full((len(history.nodes), len(RESOURCES), len(days), len(PEAK_QUANTILES)), np.nan)
    z = model.z_of_nodes()
    node = rows_among(history.nodes, model.nodes)
    for position, day in enumerate(days):
        for r, (known, load) in enumerate(_loads_of(model, history, day)):
            for q in range(len(PEAK_QUANTILES)):
                peaks[known, r, position, q] = peak_at(load, z[node[known], r, q, None])[:, 0]
    return peaks


def node_z_needed(model: PeakModel, history: History, day: date) -> Floats:
    """The z at which the bound of each node would have met the peak of a day: (n_nodes, n_resources), NaN = unknown."""
    needed = np.full((len(history.nodes), len(RESOURCES)), np.nan)
    usage = history.node_usage[:, :, history.days.index(day)]
    for r, (known, load) in enumerate(_loads_of(model, history, day)):
        needed[known, r] = required_z(load, usage[known, r])[:, 0]
    return needed
