"""From log files to integers: records, readers, text rules, answer metrics, id tables.

Corpus and oracle become typed records (`records`, `jsonl`, `parquet`). Trajectories become flat
columns of strings (`flat`) and these chunks of integers (`encode`, `chunk`), a stretch of a file at
a time. Arrays that outlive a process lie in files of their own (`arrays_file`). SPEC sections 1, 2
and 13.
"""
