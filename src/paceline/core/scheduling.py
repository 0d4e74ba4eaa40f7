"""The order of ready jobs: classes, priorities and how both rise with age."""

from enum import IntEnum
from typing import NamedTuple

from paceline.core.model import SECOND
from paceline.core.problem import Problem


class QueueClass(IntEnum):
    """How urgent a kind of work is; the lower number goes first."""

    INTERACTIVE = 0
    STANDARD = 1
    BATCH = 2

    @property
    def word(self) -> str:
        """The class as people write it."""
        return self.name.lower()


FIRST, BACKGROUND = 0, 100
PRIORITY_NAMES = {"critical": FIRST, "high": 25, "normal": 50, "medium": 50, "low": 75, "background": BACKGROUND}

CLASS_RISES_EVERY = 20 * SECOND
PRIORITY_RISES_EVERY = 60 * SECOND
PRIORITY_RISES_BY = 25
NO_LIMIT = 1 << 63

_CLASSES = tuple(QueueClass)


class Rank(NamedTuple):
    """Where a job stands among all ready jobs; the smallest goes first, equals in order of arrival."""

    queue_class: QueueClass
    priority: int
    ready_at: int
    job: int


class Standing(NamedTuple):
    """The class and priority that age has given a job, and the youngest `ready_at` that has risen as far."""

    queue_class: QueueClass
    priority: int
    until: int


def standing(queue_class: int, priority: int, ready_at: int, now: int) -> Standing:
    """How far a job has risen by `now`; of two jobs of one lane the older never stands behind the younger."""
    if priority >= BACKGROUND:
        return Standing(_CLASSES[queue_class], priority, NO_LIMIT)
    age = max(0, now - ready_at)
    classes = min(age // CLASS_RISES_EVERY, queue_class)
    steps = min(age // PRIORITY_RISES_EVERY, -(-priority // PRIORITY_RISES_BY))
    needed = max(classes * CLASS_RISES_EVERY, steps * PRIORITY_RISES_EVERY)
    risen = max(FIRST, priority - steps * PRIORITY_RISES_BY)
    return Standing(_CLASSES[queue_class - classes], risen, now - needed if needed else NO_LIMIT)


def effective(queue_class: int, priority: int, ready_at: int, now: int) -> tuple[QueueClass, int]:
    """Class and priority at `now`: a function of age alone, however often anybody looks."""
    return standing(queue_class, priority, ready_at, now)[:2]


def rank(queue_class: int, priority: int, ready_at: int, job: int, now: int) -> Rank:
    """The whole order of ready jobs."""
    return Rank(*effective(queue_class, priority, ready_at, now), ready_at, job)


def parse_priority(value: int | str) -> int:
    """A priority given as a number or by its name."""
    number = _number(value)
    if number is None or not FIRST <= number <= BACKGROUND:
        allowed = f"{FIRST} (first) to {BACKGROUND} (last), or {', '.join(PRIORITY_NAMES)}"
        raise Problem(code="bad_priority", what="not a priority", found=_shown(value), allowed=allowed)
    return number


def parse_queue_class(value: QueueClass | str) -> QueueClass:
    """A queue class given by its name."""
    if isinstance(value, QueueClass):
        return value
    known = {one.word: one for one in QueueClass}
    found = known.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise Problem(code="bad_queue_class", what="not a queue class", found=_shown(value), allowed=", ".join(known))
    return found


def _number(value: object) -> int | None:
    if isinstance(value, str):
        text = value.strip().lower()
        if text.isascii() and text.isdecimal() and len(text) <= len(str(BACKGROUND)):
            return int(text)
        return PRIORITY_NAMES.get(text)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _shown(value: object) -> str:
    """Short and safe whatever was handed in: foreign `repr`s may raise, and so may those of enormous numbers."""
    if type(value) in (str, float, bool) or (type(value) is int and value.bit_length() < 64):
        return repr(value)[:60]
    return type(value).__name__
