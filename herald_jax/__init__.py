"""HERALD-JAX: audits of composed rewards of search agents, as array programs."""

__version__ = "0.1.0"
