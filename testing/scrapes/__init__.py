"""Scrapes of an invented cluster whose truth is known, bent in the ways in which other clusters' scrapes differ.

cluster     a healthy scrape and the truth
changing    the words in which bends are written
bends       the table of them: what is changed, and what is right then
judging     reads a scrape from a real Prometheus as the trainer does, and compares it with the truth
"""
