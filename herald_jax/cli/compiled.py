"""Compiled programs are kept from one audit to the next: the second starts in half the time."""

import hashlib
import os
import platform
from pathlib import Path

import jax


def keep_compiled() -> None:
    """Let JAX keep compiled programs in the user's cache folder, unless told where else.

    One folder for each kind of processor: a home that several machines share must not hand one's
    programs to another. `JAX_COMPILATION_CACHE_DIR` takes precedence; an empty one switches it off.
    A folder that cannot be made is no error, since nothing depends on it.
    """
    chosen = getattr(jax.config, "jax_compilation_cache_dir", None)
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or chosen:
        return
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "herald-jax" / f"programs-{_processor()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # Most programs of an audit compile in a fraction of a second each; together they are the wait.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def _processor() -> str:
    """A name for this machine's kind of processor and its instruction set."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = [platform.processor(), platform.node()]
    told = {line for line in lines if line.startswith(("flags", "Features", "model name"))}
    text = "\n".join([platform.machine(), *sorted(told or set(lines))])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
