"""Figures as people read them: tables for the terminal, and HTML pages."""
