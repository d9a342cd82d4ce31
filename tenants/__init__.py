"""Tenants: how much each team may use, what it lends, and who gives way when a lender wants it back."""
