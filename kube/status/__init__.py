"""Writes conditions and statuses: which patch says what, when it is due, and what each answer means."""
