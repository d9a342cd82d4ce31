"""The nightly run: a history in, a fitted and published model out."""
