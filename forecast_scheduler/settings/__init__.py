"""The settings document: every feature's own class, composed, read once, and written as a page."""
