"""A history directory of Parquet files (docs/history-layout.md), read in bounded memory and cleaned."""
