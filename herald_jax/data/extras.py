"""Libraries that are not always installed, imported where they are used."""

from types import ModuleType

from herald_jax.types import HeraldError


def require_tfds() -> ModuleType:
    """The module `tensorflow_datasets`, with ArrayRecord beside it.

    Raises:
        HeraldError: one of them is not installed.
    """
    try:
        # Only whether it is there: TensorFlow Datasets imports it where it is needed.
        import array_record.python.array_record_module  # noqa: F401
        import tensorflow_datasets
    except ImportError as error:
        missing = "TensorFlow Datasets with ArrayRecord"
        raise HeraldError(
            f"{missing} is not installed ({error}); install it: pip install 'herald-jax[tfds]'"
        ) from error
    return tensorflow_datasets
