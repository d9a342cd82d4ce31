"""Looks at several clusters one after the other, and the table that compares them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from rich.console import Console
from rich.table import Table

from base.errors import ForecastError, InputError
from forecast_scheduler.commands.look.screen import opened
from forecast_scheduler.reports.table_format import Column, printable, table_of
from kube.client.cluster_access import ClusterAccess
from kube.client.kubeconfig import context_names, kubectls_own
from scorer.load_scale import UNKNOWN, percent

logger = logging.getLogger(__name__)

Figures = Mapping[str, Any]
"""A document of LookFigures, or of a cluster that could not be looked at: `cluster` and `error`."""


def chosen_clusters(access: ClusterAccess, contexts: Sequence[str]) -> tuple[ClusterAccess, ...]:
    """Return the clusters that `--context` names, each once. Raises InputError.

    access   : its kubeconfig has the contexts
    contexts : names, or patterns as of a shell: 'prod-*'; none = `access` alone
    """
    if not contexts:
        return (access,)
    known = context_names(access.kubeconfig or kubectls_own())
    found: dict[str, None] = {}
    for one in contexts:
        # A name may hold what a pattern does.
        named = [one] if one in known else [name for name in known if fnmatchcase(name, one)]
        if not named:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"the kubeconfig has no context {one!r}: {has}")
        found |= dict.fromkeys(named)
    return tuple(replace(access, context=name) for name in found)


def look_at_each(
    clusters: Sequence[ClusterAccess], look: Callable[[ClusterAccess], dict[str, Any]], err: Console
) -> Iterator[dict[str, Any]]:
    """Yield what each look finds, or under "error" why it failed: that stops no other. err: says which one it is"""
    for number, one in enumerate(clusters, start=1):
        err.print(f"{one.name()} ({number} of {len(clusters)})", highlight=False, markup=False, soft_wrap=True)
        try:
            yield look(one)
        except ForecastError as error:
            yield {"cluster": one.name(), "error": str(error)}
        except Exception as error:  # a fault of ours with one cluster loses no other's figures
            logger.exception("a look failed", extra={"cluster": one.name()})
            yield {"cluster": one.name(), "error": f"{type(error).__name__}: {error}"}


def clusters_table(looks: Sequence[Figures]) -> Table:
    """One row for each cluster, in the order in which they were looked at."""
    title = f"{sum('error' not in one for one in looks)} of {len(looks)} clusters"
    currencies = {one["money"]["currency"] for one in looks if _cost(one) is not None}
    costs = [Column(f">{currency} a\nmonth", _cost, _whole) for currency in sorted(currencies)]
    return opened(table_of(title, [*_COLUMNS, *costs], looks))


def failure_lines(looks: Sequence[Figures]) -> Iterator[str]:
    """A line for each cluster that could not be looked at."""
    return (f"{printable(one['cluster'])}: {one['error']}" for one in looks if "error" in one)


def _in(section: str, of: Callable[[Mapping[str, Any]], object]) -> Callable[[Figures], object]:
    """A column of a section's figure; None where there is none."""
    return lambda one: None if one.get(section) is None else of(one[section])


def _hot_share(rule: str) -> Callable[[Figures], object]:
    return _in("placing", lambda found: percent(found["rules"][rule]["hot_share"], digits=2))


def _cores(when: str) -> Callable[[Figures], object]:
    return _in("requests", lambda found: f"{found['savings'][f'cores_{when}']:.0f}")


_COLUMNS = (
    Column("cluster"),
    Column(">nodes", _in("nodes", lambda found: found["n_nodes"])),
    Column(">nodes\nneeded", _in("capacity", lambda found: found["nodes"]["forecast"])),
    Column(">hot\ntonight", _in("nodes", lambda found: found["hot_tonight"])),
    Column(">hot half\nhours", _hot_share("native")),
    Column(">by the\nforecast", _hot_share("forecast")),
    Column(">cores\nasked", _cores("today")),
    Column(">cores\nadvised", _cores("recommended")),
)
_cost = _in("money", lambda found: found["per_month"] if found["nodes_with_price"] else None)


def _whole(cost: float | None) -> str:
    return UNKNOWN if cost is None else f"{cost:,.0f}"
