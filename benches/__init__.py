"""CPU cost per request and accuracy of reported times, compared with other load generators.

`python -m benches` measures everything that is installed and writes docs/benchmarks.md from the data. This
package is not part of the product: it imports nothing of Loadlens but the chart styles.
"""
