"""The command line and its settings, thin: composes forecast, trainer, scorer and extender, and imports them lazily."""
