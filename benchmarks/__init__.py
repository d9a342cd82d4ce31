"""The measurements behind the figures in docs/benchmarks.md; not part of the wheel."""
