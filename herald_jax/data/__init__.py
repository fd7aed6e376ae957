"""From log files to integer arrays: records, readers, text rules, id tables, blocks.

A file becomes typed records (`records`, `jsonl`, `parquet`), the records of three kinds of file
become a `Pool` (`pool`) of sorted rows and ragged integer columns (`ids`, `columns`), and a
selection of its rows becomes padded arrays of one fixed shape (`blocks`). SPEC sections 1, 2, 13.
"""
