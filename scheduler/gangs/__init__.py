"""Gangs: pods of a PodGroup that are placed all together or not at all."""
