"""What every notifier promises, whatever carries its hints: the same tests over all there are."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bus.hearing import READY, Heard, in_a_loop, living, turn
from paceline.bus.local import LocalNotifier
from paceline.bus.postgres import PostgresNotifier
from paceline.bus.protocol import Hint, Notifier, Reach

Make = Callable[[], Notifier]
REACHES: list[Reach] = ["process", "host", "hosts"]


@pytest.fixture
def reach() -> Reach:
    """How far the notifiers of a test reach; without another word all the way."""
    return "hosts"


@pytest.fixture
def make(reach: Reach, tmp_path: Path, database: str, channel: str) -> Make:
    """Makes notifiers of that reach which hear each other."""
    makers: dict[Reach, Make] = {
        "process": LocalNotifier,
        "host": lambda: LocalNotifier(tmp_path / "bus"),
        "hosts": lambda: PostgresNotifier(database, channel),
    }
    return makers[reach]


every_notifier = pytest.mark.parametrize("reach", REACHES)
notifiers_that_reach_others = pytest.mark.parametrize("reach", REACHES[1:])


@every_notifier
def test_once_settled_a_notifier_says_how_far_it_reaches_and_why_not_farther(make: Make, reach: Reach) -> None:
    async def scene() -> None:
        async with living(make()) as (notifier, _):
            assert (notifier.reach, notifier.reason) == (reach, "" if reach != "process" else "no folder was given")

    in_a_loop(scene)


@every_notifier
def test_a_hint_reaches_every_listener_of_the_process(make: Make) -> None:
    async def scene() -> None:
        async with living(make()) as (notifier, heard):
            also = Heard()
            notifier.listen(also)
            notifier.tell([Hint("ended", (1, 2))])
            assert heard.calls == []
            await turn()
            assert heard.calls == also.calls == [(Hint("ended", (1, 2)),)]

    in_a_loop(scene)


@every_notifier
def test_many_tells_between_two_turns_become_one_call(make: Make) -> None:
    async def scene() -> None:
        async with living(make()) as (notifier, heard):
            for job in range(100):
                notifier.tell([Hint("ended", (job,)), READY])
            await turn()
            assert heard.calls == [(Hint("ended", tuple(range(100))), READY)]

    in_a_loop(scene)


@every_notifier
def test_telling_from_another_thread_calls_back_on_the_loop(make: Make) -> None:
    async def scene() -> None:
        async with living(make()) as (notifier, heard):
            teller = threading.Thread(target=notifier.tell, args=([Hint("cancel", (9,))],))
            teller.start()
            await heard.until(Hint("cancel", (9,)))
            teller.join()
            assert heard.threads == {threading.get_ident()}

    asyncio.run(scene(), debug=True)  # which refuses what is not safe between threads


@every_notifier
def test_who_has_unsubscribed_hears_nothing_even_of_the_delivery_under_way(make: Make) -> None:
    async def scene() -> None:
        notifier, late = make(), Heard()
        notifier.listen(lambda _: unsubscribe())
        unsubscribe = notifier.listen(late)
        notifier.start()
        notifier.tell([READY])
        await turn()
        unsubscribe()
        notifier.stop()
        assert late.calls == []

    in_a_loop(scene)


@every_notifier
def test_a_listener_that_fails_is_reported_and_silences_nobody(make: Make) -> None:
    async def scene() -> None:
        reports: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report["exception"]))
        failure = RuntimeError("a listener's own fault")

        def fail(_: tuple[Hint, ...]) -> None:
            raise failure

        async with living(make()) as (notifier, _):
            heard = Heard()
            notifier.listen(fail)
            notifier.listen(heard)
            notifier.tell([READY])
            await turn()
        assert (heard.calls, reports) == ([(READY,)], [failure])

    in_a_loop(scene)


@every_notifier
def test_stopping_twice_or_before_the_start_is_fine_and_so_is_starting_again(make: Make, reach: Reach) -> None:
    async def scene() -> None:
        notifier, heard = make(), Heard()
        await notifier.settled()
        notifier.stop()
        notifier.tell([READY])
        for _ in range(2):
            notifier.start()
            notifier.start()
            await notifier.settled()
            assert notifier.reach == reach
            await turn()
            unsubscribe = notifier.listen(heard)
            notifier.tell([READY])
            await turn()
            unsubscribe()
            notifier.stop()
            notifier.stop()
            assert (notifier.reach, notifier.reason) == ("process", "stopped")
        notifier.listen(heard)
        notifier.tell([READY])
        await turn()
        assert heard.calls == [(READY,), (READY,)]

    in_a_loop(scene)


@every_notifier
def test_a_stop_at_any_moment_of_the_start_leaves_nothing_that_goes_on(make: Make) -> None:
    async def scene() -> None:
        notifier, heard = make(), Heard()
        notifier.listen(heard)
        for turns in range(60):
            notifier.start()
            for _ in range(turns):
                await asyncio.sleep(0)
            notifier.stop()
        await turn()
        mine = asyncio.current_task()
        assert [task for task in asyncio.all_tasks() if task is not mine] == []
        assert (notifier.reach, notifier.reason) == ("process", "stopped")

    in_a_loop(scene)


@every_notifier
def test_a_notifier_left_behind_by_one_loop_stays_quiet_and_can_be_started_on_another(make: Make, reach: Reach) -> None:
    notifier = make()

    async def forgetful() -> None:
        notifier.start()
        await notifier.settled()
        notifier.tell([READY])

    async def scene() -> None:
        async with living(notifier) as (_, heard), living(make()) as (other, _):
            assert notifier.reach == reach
            notifier.tell([READY])
            await heard.until(READY)
            if reach != "process":
                other.tell([Hint("nodes")])
                await heard.until(Hint("nodes"))

    in_a_loop(forgetful)
    notifier.tell([READY])
    in_a_loop(scene)
    in_a_loop(forgetful)
    notifier.tell([READY])
    notifier.stop()


@notifiers_that_reach_others
def test_notifiers_hear_each_other_and_themselves_once(make: Make) -> None:
    async def scene() -> None:
        async with living(make()) as (one, by_one), living(make()) as (other, by_other):
            one.tell([Hint("ended", (1,))])
            other.tell([Hint("cancel", (2,))])
            await by_one.until(Hint("cancel", (2,)))
            await by_other.until(Hint("ended", (1,)))
            one.tell([Hint("nodes")])
            await by_other.until(Hint("nodes"))
            assert sorted(by_one.hints) == [Hint("cancel", (2,)), Hint("ended", (1,)), Hint("nodes")]
            assert sorted(by_other.hints) == [Hint("cancel", (2,)), Hint("ended", (1,)), Hint("nodes")]

    in_a_loop(scene)


@notifiers_that_reach_others
def test_who_has_told_its_own_listeners_tells_the_others_alone(make: Make) -> None:
    async def scene() -> None:
        async with living(make()) as (one, by_one), living(make()) as (other, by_other):
            one.tell_others([Hint("ended", (1,))])
            await by_other.until(Hint("ended", (1,)))
            other.tell_others([Hint("ended", (2,))])
            await by_one.until(Hint("ended", (2,)))
            assert (by_one.hints, by_other.hints) == ([Hint("ended", (2,))], [Hint("ended", (1,))])

    in_a_loop(scene)


@notifiers_that_reach_others
def test_a_hint_told_from_another_thread_reaches_the_others(make: Make) -> None:
    async def scene() -> None:
        async with living(make()) as (one, _), living(make()) as (_, by_other):
            await asyncio.to_thread(one.tell, [Hint("cancel", (9,))])
            await by_other.until(Hint("cancel", (9,)))

    asyncio.run(scene(), debug=True)


@notifiers_that_reach_others
def test_what_was_told_just_before_the_stop_still_reaches_the_others(make: Make) -> None:
    async def scene() -> None:
        async with living(make()) as (_, by_other):
            async with living(make()) as (one, _):
                one.tell([Hint("ended", (7,))])
            await by_other.until(Hint("ended", (7,)))

    in_a_loop(scene)
