"""One thread at a time works for all that wait; tests/clients/test_polling.py has histories with a client."""

from __future__ import annotations

import threading
import time

from cloudevents_kafka.primitives.turns import Turns, Waiter


class Works:
    """Work that ends waits one by one; ``most`` is the largest number of threads that worked at once."""

    def __init__(self) -> None:
        self.ended: list[int] = []
        self.within = self.most = 0

    def __call__(self, seconds: float) -> int:
        self.within += 1
        self.most = max(self.most, self.within)
        time.sleep(min(seconds, 0.003))
        self.ended.append(threading.get_ident())
        self.within -= 1
        return 1


def test_one_thread_at_a_time_works_until_its_wait_has_ended() -> None:
    """The turn is passed on until nobody waits, and each thread returns when its own wait has ended."""
    turns, works, over = Turns(), Works(), list[int]()

    def wait(number: int) -> None:
        assert turns.wait(Waiter(), works, lambda: len(works.ended) >= number, None)
        over.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(over) == list(range(1, 9))
    assert works.most == 1
    assert not turns.waiting


def test_a_wait_ends_at_its_deadline() -> None:
    """It returns False then, and waits for nobody."""
    turns, began = Turns(), time.monotonic()
    assert not turns.wait(Waiter(), lambda _: 0, lambda: False, began + 0.05)
    assert 0.05 <= time.monotonic() - began < 0.5
    assert not turns.waiting


def test_a_thread_that_asks_comes_before_those_that_wait() -> None:
    """The thread that works leaves the turn to it after one piece of work, and goes on afterwards."""
    turns, works, over = Turns(), Works(), threading.Event()
    waiting = threading.Thread(target=turns.wait, args=(Waiter(), works, over.is_set, None))
    waiting.start()
    while not works.ended:
        time.sleep(0.001)
    mine: list[int] = []

    def work(_: float) -> int:
        before = len(works.ended)
        time.sleep(0.02)
        mine.append(len(works.ended) - before)
        return 7

    assert [turns.ask(work, 0, 5) for _ in range(5)] == [7] * 5
    assert mine == [0] * 5
    over.set()
    waiting.join(10)
    assert not waiting.is_alive()


def test_work_may_be_offered_and_is_done_by_the_thread_with_the_turn_alone() -> None:
    """While another thread works, what is offered is not done; in the own turn it is."""
    turns, done = Turns(), list[str]()

    def offer(_: float) -> int:
        thread = threading.Thread(target=turns.offer, args=(lambda _: len(done.append("other") or "x"),))
        thread.start()
        thread.join(10)
        turns.offer(lambda _: len(done.append("mine") or "x"))
        return 1

    turns.offer(offer)
    assert done == ["mine"]


def test_nobody_waits_for_work_that_takes_long() -> None:
    """A thread that asks, or waits, works itself if the thread with the turn does not end."""
    turns, entered, left = Turns(), threading.Event(), threading.Event()

    def hang(_: float) -> int:
        entered.set()
        assert left.wait(10)
        return 0

    hanging = threading.Thread(target=turns.ask, args=(hang, 0, 1))
    hanging.start()
    assert entered.wait(10)
    assert turns.ask(lambda _: 3, 0, 0.05) == 3
    works = Works()
    assert turns.wait(Waiter(), works, lambda: bool(works.ended), time.monotonic() + 5)
    left.set()
    hanging.join(10)
