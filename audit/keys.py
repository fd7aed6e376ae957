"""What a table of a report is called: its kind, what tells it from others of its kind, selector."""

import msgspec

# The kind of a table, then what tells it from others of its kind.
Key = tuple[str, ...]
FIRST_VISIBLE, ORACLE_WORST = "first_visible", "oracle_worst"
SELECTORS = (FIRST_VISIBLE, ORACLE_WORST)
# Kinds of table of which only the largest margin is wanted.
CERTIFICATE, CLOSED_CORPUS = "certificate", "closed_corpus"
LARGEST_ONLY = (CERTIFICATE, CLOSED_CORPUS)


def key_name(key: Key) -> str:
    """A key as one string, whatever names of models stand in it."""
    return msgspec.json.encode(key).decode()


def key_of(name: str) -> Key:
    """The key of a string that `key_name` made."""
    return msgspec.json.decode(name, type=tuple[str, ...])
