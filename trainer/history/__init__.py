"""A history directory of Parquet files (docs/understand/history-layout.md), read in bounded memory and cleaned."""
