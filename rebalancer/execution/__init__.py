"""Carries plans out: pods are evicted a few at a time, and every step is written to the RebalancePlan before it is
taken.
"""
