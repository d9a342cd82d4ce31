"""The peaks page: predicted against actual peaks of nodes and services, as `report --html` writes it.

day_reading   one model on one day: curves and peaks of all nodes and services
origins       which forecast counts for which day, and how honest it is
figures       error, coverage and spread of every day, over all nodes
tonight       the hottest nodes of the day that comes
view          all of it in one object
packing       curves in few bytes
basis         what the figures rest on, in words
figures_json  the same without curves, for `--json` and the terminal's tables
tables        for the terminal
running       as commands read it, with the settings' registry
html          the page, drawn in the browser by peaks.js
"""
