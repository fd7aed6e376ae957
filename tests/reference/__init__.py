"""The slow, plain reading of every figure that an audit reports.

Python dicts, sets and loops, the standard library alone, nothing of `herald_jax`: an independent
second account that the fast engine is compared with. Where this and the engine differ, one of the
two has misread the definitions.
"""
