"""Charts: rows in, Vega-Lite specs out. `columns` is the contract of the datasets."""
