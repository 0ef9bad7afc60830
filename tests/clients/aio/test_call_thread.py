"""The law of `CallThread`: one thread makes the calls, which neither hold the loop nor the process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from functools import partial
from random import Random

import pytest

from cloudevents_kafka.clients.aio._call_thread import CallThread, call_once
from tests.support.cases import each


@each("seed", range(20))
def test_calls_are_made_in_order_by_one_thread(seed: int) -> None:
    """Also those that come while a call waits for the loop; those that do not nest are made after it."""
    chosen = Random(seed)

    async def work() -> None:
        thread, loop = CallThread("calls"), asyncio.get_running_loop()
        made: list[tuple[int, bool]] = []
        threads: set[threading.Thread] = set()
        depth = 0

        def call(number: int, *, nests: bool) -> int:
            threads.add(threading.current_thread())
            assert nests or not depth
            made.append((number, nests))
            return number

        async def ask_on(first: int, count: int) -> None:
            for number in range(first, first + count):
                nests = chosen.random() < 0.7
                calls.append(thread.call(partial(call, number, nests=nests), nests=nests))
                if nests and chosen.random() < 0.5:
                    await calls[-1]

        def rebalance(first: int) -> None:
            nonlocal depth
            depth += 1
            thread.wait(ask_on(first, 5), loop)
            depth -= 1

        calls: list[asyncio.Future[int]] = []
        async with asyncio.timeout(100):
            for round_ in range(10):
                rebalanced = thread.call(partial(rebalance, 5 * round_), nests=False)
                await rebalanced
                if chosen.random() < 0.2:
                    thread.end()
            assert sorted(await asyncio.gather(*calls)) == list(range(50))
        for nests in (False, True):
            numbers = [number for number, of_kind in made if of_kind == nests]
            assert numbers == sorted(numbers)
        assert not any(each.daemon is False for each in threads)

    asyncio.run(work())


def test_a_call_raises_its_error_and_may_be_cancelled() -> None:
    """A task that is cancelled does not end the call; the next one is made after it."""

    async def work() -> None:
        thread, gate = CallThread("calls"), threading.Event()
        with pytest.raises(ZeroDivisionError):
            await thread.call(lambda: 1 // 0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await thread.call(gate.wait)
        later = thread.call(lambda: 7)
        gate.set()
        assert await later == 7
        assert await call_once(lambda: 8, "once") == 8

    asyncio.run(work())


def test_a_call_that_waits_for_a_loop_ends_with_it() -> None:
    """The thread of a client that is left to it ends, too."""
    gate, ended = threading.Event(), threading.Event()

    async def never() -> None:
        await asyncio.sleep(1000)

    async def work() -> None:
        thread, loop = CallThread("waits"), asyncio.get_running_loop()

        def wait() -> None:
            gate.wait()
            thread.wait(never(), loop)
            ended.set()

        thread.call(wait, nests=False)
        loop.call_soon(loop.stop)
        loop.call_soon(gate.set)

    loop = asyncio.new_event_loop()
    loop.create_task(work())  # noqa: RUF006  # the loop stops before another turn
    loop.run_forever()
    gate.set()
    assert not ended.wait(0.1)
    loop.close()
    assert ended.wait(50)


def test_a_call_that_hangs_holds_no_process() -> None:
    """Neither `asyncio.run` nor the interpreter waits for the thread."""
    program = """
import asyncio, threading
from cloudevents_kafka.clients.aio._call_thread import CallThread
async def main():
    thread = CallThread("hangs")
    thread.call(threading.Event().wait)
    await asyncio.sleep(0.01)
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
