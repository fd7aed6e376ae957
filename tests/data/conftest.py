"""Examples that write files take as long as the disk does: no deadline for a single one."""

from hypothesis import settings

settings.register_profile("files", deadline=None)
settings.load_profile("files")
