"""Faults that people met in this trade, each put to the project's own functions.

One module an area, one function a fault: it takes a `Case`, whatever numbers that holds, and a
folder to write in, and asserts what the case says is right.
"""
