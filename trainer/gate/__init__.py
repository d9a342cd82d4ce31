"""May tonight's model replace the one in use? Decided per resource, on forecasts compared as they were issued.

evidence   the model in use, tonight's recipe refitted at its cut-off, and the seasonal naive, on the days since
           (node_evidence: by nodes, if pods are not measured)
verdict    from these figures to a verdict with its reason, in one pure function
merge      arrays of a resource kept from the model in use, or its bounds widened
reproduction  the model's own answer for the last days against what was recorded
withhold   what does not reproduce them is kept from the model in use, or left out
gate       the above in order: `run_gate` before the final fit, `apply_gate` on its result
"""
