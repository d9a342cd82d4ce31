"""One day read twice becomes one day: what either reading knows is kept. Pure.

A day is read again while samples may still arrive late, and by then the server may have forgotten its first hours: so
neither reading may simply replace the other. Where they differ in what a node can do, its capacity changed within the
day: the largest of each resource is kept in front of what was read last.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from base.arrays import Floats, Ints
from trainer.history.capacity_file import DAY
from trainer.prometheus.day_tables import DayTables

_POD_KEYS, _NODE_KEYS = ("namespace", "pod"), ("node",)


def merge_days(old: DayTables, new: DayTables) -> DayTables:
    """Both readings of one day. Of samples taken at the same time the fuller reading counts, the new one if alike."""
    return replace(
        new,
        usage=_merge_samples(old.usage, new.usage),
        nodes=_merge_samples(old.nodes, new.nodes),
        pods=_merge_facts(old.pods, new.pods, _POD_KEYS),
        capacity=_merge_capacity(old.capacity, new),
    )


def _merge_capacity(old: pa.Table, new: DayTables) -> pa.Table:
    """What was read last of each node, after the largest of both readings where that is more; with the day."""
    here = new.capacity.drop_columns([DAY] if DAY in new.capacity.column_names else [])
    before = old.select([name for name in here.column_names if name in old.column_names]).to_pandas()
    before = before.astype({"node": "string"})
    last = _merge_facts(old.filter(pa.array(~before["node"].duplicated(keep="last"))), here, _NODE_KEYS)
    latest = last.to_pandas().astype({"node": "string"}).set_index("node")
    largest = pd.concat([before.set_index("node"), latest]).groupby("node").max().loc[latest.index]
    rows = pd.concat([largest[(largest > latest).any(axis=1)], latest]).sort_index(kind="stable").reset_index()
    table = pa.Table.from_pandas(rows, schema=last.schema, preserve_index=False)
    return table.append_column(DAY, pa.array([new.day] * len(rows), pa.date32()))


def _merge_samples(old: pa.Table, new: pa.Table) -> pa.Table:
    """Time by time the rows of the reading that has more values there; sorted by timestamp."""
    if not old.num_rows or not new.num_rows:
        return new if new.num_rows else old
    times = np.union1d(_milliseconds(old), _milliseconds(new))
    keep_new = _fullness(new, times) >= _fullness(old, times)
    rows_old = ~keep_new[np.searchsorted(times, _milliseconds(old))]
    rows_new = keep_new[np.searchsorted(times, _milliseconds(new))]
    merged = pa.concat_tables(
        [old.filter(pa.array(rows_old)), new.filter(pa.array(rows_new))], promote_options="permissive"
    ).unify_dictionaries()
    order = np.argsort(_milliseconds(merged), kind="stable")
    return merged.take(pa.array(order))


def _merge_facts(old: pa.Table, new: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """One row per key; the new reading's values where it has any, else the old one's."""
    frames = [table.to_pandas().astype(dict.fromkeys(keys, "string")) for table in (old, new)]
    indexed = [frame.set_index(list(keys)) for frame in frames]
    merged = indexed[1].combine_first(indexed[0]).reset_index()
    return pa.Table.from_pandas(merged[[*new.column_names]], schema=_plain(new.schema), preserve_index=False)


def _milliseconds(table: pa.Table) -> Ints:
    times: Ints = table["timestamp"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()).to_numpy()
    return times


def _fullness(table: pa.Table, times: Ints) -> Floats:
    """How many rows and measured values a table has at each of the times: (n_times,)."""
    place = np.searchsorted(times, _milliseconds(table))
    fullness = np.bincount(place, minlength=len(times)).astype(np.float64)
    for field in table.schema:
        if pa.types.is_floating(field.type):
            measured = pc.is_valid(table[field.name]).to_numpy()
            fullness += np.bincount(place, weights=measured, minlength=len(times))
    return fullness


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema with text instead of dictionaries."""
    return pa.schema([pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in schema])
