"""Work ahead: the same items in order, errors behind them, and no thread that outlives its use."""

import itertools
import threading

import pytest

from herald_jax.data.ahead import ahead


def running() -> set[threading.Thread]:
    return set(threading.enumerate())


def ended(before: set[threading.Thread]) -> bool:
    """Whether every thread that was started since has ended, given time to."""
    for thread in running() - before:
        thread.join(timeout=60)
    return not running() - before


@pytest.mark.parametrize("depth", [1, 2, 50])
@pytest.mark.parametrize("count", [0, 1, 2, 200])
def test_all_items_in_order(count, depth):
    before = running()
    items = [object() for _ in range(count)]
    found = list(ahead(iter(items), depth))
    assert len(found) == count
    assert all(a is b for a, b in zip(found, items, strict=True))
    assert ended(before)


def test_items_that_look_like_ends_are_items():
    strange = [None, False, ValueError("an item"), StopIteration()]
    assert list(ahead(strange)) == strange


def test_the_next_item_is_made_while_the_last_is_used():
    made = threading.Semaphore(0)

    def items():
        for number in range(5):
            made.release()
            yield number

    found = []
    for number in ahead(items()):
        if number == 0:
            assert made.acquire(timeout=60)  # this one
        assert number == 4 or made.acquire(timeout=60)  # the next one
        found.append(number)
    assert found == [0, 1, 2, 3, 4]


def test_no_more_waits_than_allowed():
    started = []
    allowed = threading.Semaphore(0)

    def items():
        for number in range(20):
            started.append(number)
            allowed.release()
            yield number

    for depth in (1, 3):
        started.clear()
        work = ahead(items(), depth)
        assert next(work) == 0
        # One is used, `depth` wait, and one is in the hands of the thread.
        while len(started) < depth + 2:
            assert allowed.acquire(timeout=60)
        for number in work:
            assert len(started) <= number + depth + 2
    assert started == list(range(20))


class Broken(BaseException):
    """What not even `except Exception` catches."""


@pytest.mark.parametrize("error", [ValueError("broken"), Broken("broken"), KeyboardInterrupt()])
def test_an_error_comes_behind_the_items_before_it(error):
    def items():
        yield 1
        yield 2
        raise error

    before = running()
    found = []
    with pytest.raises(type(error)) as caught:
        found.extend(iter_into(found, ahead(items(), 5)))
    assert caught.value is error
    assert found == [1, 2]
    assert ended(before)


def iter_into(found, items):
    """Puts items where they are seen whatever happens behind them."""
    for item in items:
        found.append(item)
    return []


def test_stopping_early_ends_the_thread():
    closed = threading.Event()

    def items():
        try:
            number = 0
            while True:
                yield number
                number += 1
        finally:
            closed.set()

    before = running()
    for number in ahead(items(), 3):
        if number == 5:
            break
    assert ended(before)
    assert closed.wait(timeout=60)  # what the items hold open is let go


def test_an_error_of_the_user_ends_the_thread():
    def use():
        for number in ahead(itertools.count()):
            number / 0

    before = running()
    with pytest.raises(ZeroDivisionError):
        use()
    assert ended(before)


def test_nothing_runs_before_the_first_is_wanted():
    before = running()

    def items():
        pytest.fail("was begun")
        yield

    assert running() == before
    work = ahead(items())
    assert running() == before
    work.close()
