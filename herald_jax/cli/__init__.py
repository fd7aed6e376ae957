"""The `herald` command."""
