"""What a nightly run read, learned, decided and published, as JSON and as one HTML page.

gaps            how much of each day was measured
issued_scores   how the forecasts issued for past days did
learned         what the model knows of each service
capacities      capacities that are not configured
changes         what is different from the model before
saving          what fewer nodes have saved since `capacity` promised it
report          all of it in one object, which also gives the run's metrics
html            the page
"""
