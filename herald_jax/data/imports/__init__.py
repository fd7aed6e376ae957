"""Published benchmark files turned into corpus and oracle (`herald import`).

`source` streams the objects of a file, one module a format says what a question of it means,
`passages` finds the distinct passages and names them, `benchmark` puts the two output files
together. Nothing here makes trajectories.
"""
