"""The measurements behind the figures in the README; not part of the wheel."""
