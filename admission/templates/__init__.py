"""Affinity templates: typed parameters in, node affinity and pod (anti-)affinity out, applied to pods by bindings."""
