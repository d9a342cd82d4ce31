"""The history we keep ourselves, because Prometheus forgets: one Parquet file per UTC day and table, in any store."""
