"""Storms: thousands of pods that come at once, foreseen, and room that is kept for them."""
