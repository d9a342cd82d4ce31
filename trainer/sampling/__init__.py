"""A history without a metrics store: readings of kubelets become the cells of a day, and these its tables. Pure but for
the journal, a file. `forecast_scheduler/recording/` reads the kubelets.
"""
