"""A pool of any size: trajectories as encoded rows in a store, their corpus and their gold labels.

Files are read once and become chunks of integers in a store, in memory or in a work folder
(`ingest`); what is wrong between records is found there (`clashes`); rows come back a section of
questions at a time, sorted (`pool`). Nothing that is kept in memory grows with the number of rows.
"""
