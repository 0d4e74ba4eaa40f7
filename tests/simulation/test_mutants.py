"""Known mistakes, each found within a bounded number of seeds: the simulation can see what it is there for."""

import pytest

from paceline.testing.mutants import MUTANTS, Mutant
from paceline.testing.simulation import LawBroken, simulate

SEEDS = 250


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_known_mistake_is_found(mutant: Mutant) -> None:
    assert _first_law_broken(mutant) in mutant.breaks


def _first_law_broken(mutant: Mutant) -> str | None:
    with mutant.store() as store:
        for seed in range(SEEDS):
            try:
                simulate(seed, store=store)
            except LawBroken as broken:
                return broken.law
    return None


def test_a_mutant_that_changes_nothing_any_more_is_refused() -> None:
    stale = Mutant("says what nobody says", frozenset(), {"jobs.complete": ("no such words", "")})
    with pytest.raises(ValueError, match="does not say"), stale.store():
        pass


def test_the_product_is_itself_again_afterwards() -> None:
    before = simulate(3)
    for mutant in MUTANTS:
        with mutant.store():
            pass
    assert simulate(3) == before
