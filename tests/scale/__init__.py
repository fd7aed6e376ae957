"""Audits of many files: killed, shared by processes, measured."""
