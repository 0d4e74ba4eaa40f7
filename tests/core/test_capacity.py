"""Admission takes all or nothing and never more than there is."""

from hypothesis import given
from hypothesis import strategies as st

from paceline.core.capacity import Admission, Demand, never_fits

pools = st.sampled_from(["agent:writer", "llm", "requests", "tenant:acme"])
amounts = st.dictionaries(pools, st.integers(0, 8))
demands = st.dictionaries(pools, st.integers(1, 5), max_size=3)
steps = st.lists(st.tuples(st.booleans(), demands), max_size=30)


@given(amounts, amounts, steps)
def test_what_is_held_and_admitted_never_exceeds_a_limit(
    limits: dict[str, int], held: dict[str, int], steps: list[tuple[bool, Demand]]
) -> None:
    admission = Admission(limits, held)
    used = dict(held)
    for keeps, demand in steps:
        if keeps:
            admission.keep(demand)
        elif admission.admit(demand) is None:
            for pool, units in demand.items():
                used[pool] = used.get(pool, 0) + units
                assert used[pool] <= limits.get(pool, used[pool])


@given(amounts, amounts, steps, demands)
def test_a_refusal_takes_nothing_and_names_the_first_full_pool(
    limits: dict[str, int], held: dict[str, int], steps: list[tuple[bool, Demand]], demand: Demand
) -> None:
    admission = Admission(limits, held)
    for keeps, other in steps:
        if keeps:
            admission.keep(other)
        else:
            admission.admit(other)
    before = {pool: admission.room(pool) for pool in limits}
    full = sorted(pool for pool, units in demand.items() if pool in limits and (before[pool] or 0) < units)
    assert admission.refusal(demand) == admission.admit(demand) == (full[0] if full else None)
    assert full == [] or {pool: admission.room(pool) for pool in limits} == before


def test_a_pool_without_a_limit_has_room_for_everybody() -> None:
    admission = Admission({}, {"llm": 1_000})
    assert admission.admit({"llm": 1_000}) is None
    assert admission.room("llm") is None


def test_a_limit_lowered_below_what_is_held_admits_nothing() -> None:
    admission = Admission({"llm": 2}, {"llm": 5})
    assert admission.admit({"llm": 1}) == "llm"
    assert admission.room("llm") == 0
    assert admission.admit({"requests": 1}) is None


def test_nothing_demanded_is_always_admitted() -> None:
    assert Admission({"llm": 0}, {}).admit({}) is None


def test_what_is_kept_for_a_large_job_is_not_given_to_smaller_ones() -> None:
    admission = Admission({"gpu": 4, "requests": 9}, {"gpu": 2})
    assert admission.admit({"gpu": 3}) == "gpu"
    admission.keep({"gpu": 3, "requests": 1})
    assert admission.admit({"gpu": 1}) == "gpu"
    assert admission.room("gpu") == 0


def test_only_what_the_large_job_needs_is_kept() -> None:
    admission = Admission({"gpu": 4, "requests": 9}, {"gpu": 2})
    admission.keep({"gpu": 3, "requests": 2})
    assert admission.room("requests") == 7


def test_a_job_waiting_for_a_pool_with_nothing_left_keeps_nothing_else() -> None:
    admission = Admission({"agent:writer": 1, "requests": 2}, {"agent:writer": 1, "requests": 1})
    admission.keep({"agent:writer": 1, "requests": 1})
    assert admission.admit({"requests": 1}) is None


@given(amounts, amounts, st.lists(demands, max_size=5))
def test_keeping_again_changes_nothing(limits: dict[str, int], held: dict[str, int], kept: list[Demand]) -> None:
    admission = Admission(limits, held)
    for demand in kept:
        admission.keep(demand)
    before = [admission.room(pool) for pool in limits]
    for demand in kept:
        admission.keep(demand)
    assert [admission.room(pool) for pool in limits] == before


def test_a_trial_changes_nothing_for_real() -> None:
    admission = Admission({"llm": 3}, {})
    trial = admission.copy()
    assert trial.admit({"llm": 1}) is None
    trial.keep({"llm": 5})
    assert trial.room("llm") == 0
    assert admission.room("llm") == 3


def test_a_demand_above_the_limit_can_never_fit_and_the_first_such_pool_is_named() -> None:
    limits = {"gpu": 2, "llm": 4}
    assert never_fits({"llm": 5, "gpu": 3}, limits) == "gpu"
    assert never_fits({"llm": 4, "gpu": 2}, limits) is None
    assert never_fits({"disk": 10_000}, limits) is None
