"""What the simulation has found so rarely that it is shown here directly as well."""

from paceline.core.completion import Ended, Ending
from paceline.core.model import Claimed
from paceline.node.completer import newest_of_each


def ended(job: int, epoch: int) -> Ended:
    return Ended(Claimed(job, epoch, 1, job, None, 0, 0, 0, 0, 0, 1, None, 0, 1, None), Ending.RETURNED)


def test_of_two_epochs_that_end_at_once_the_newer_counts_in_whatever_order_they_came() -> None:
    older, newer, other = ended(3, 1), ended(3, 2), ended(4, 1)
    assert newest_of_each([older, other, newer]) == [newer, other]
    assert newest_of_each([newer, other, older]) == [newer, other]


def test_ends_of_different_jobs_all_count() -> None:
    several = [ended(3, 1), ended(4, 1)]
    assert newest_of_each(several) is several
