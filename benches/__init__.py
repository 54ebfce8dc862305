"""What a request costs and what is said of it, beside other load generators.

`python -m benches` measures everything that is installed and writes docs/benchmarks.md from the data. Here is
no part of the product: nothing of Loadlens is imported but the looks of its charts.
"""
