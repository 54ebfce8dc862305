"""The labelled catalogue: services with one known flaw each, and what must be found of them.

A family draws a specimen and its twin from a seed: two settings of the same small server that differ in the
flaw alone, with what a diagnosis must name, what it may name, and the numbers that are true. Nothing here
knows how a rule works, and no rule knows what is here.
"""
