"""What an agent is: the data that the store keeps of it, and the decorator that makes one of a function."""

import functools
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, cast, get_args, overload

import msgspec

from paceline.agents.origin import Handler, Place, name_of, origin_of, place_of
from paceline.agents.registry import registry
from paceline.core.durations import HOUR, LONGEST, Duration, parse_duration
from paceline.core.names import check_name, closest, shown
from paceline.core.problem import Problem
from paceline.core.scheduling import BACKGROUND, FIRST, QueueClass, parse_priority, parse_queue_class
from paceline.errors import UsageError, as_error
from paceline.payloads import complaint

P = ParamSpec("P")
R = TypeVar("R")

Isolation = Literal["process", "shared", "inline"]
AVAILABLE: tuple[Isolation, ...] = ("inline",)
"""The isolations that nodes can give today; the first is what an agent gets that does not ask."""

CEILING = 64
_MOST = 1_000_000
_RANGES: dict[str, tuple[int, int]] = {
    "ceiling": (1, _MOST),
    "retries": (0, _MOST),
    "max_crashes": (0, _MOST),
    "timeout": (1, LONGEST),
    "priority": (FIRST, BACKGROUND),
    "queue_class": (min(QueueClass), max(QueueClass)),
}
_MAY_BE_NONE = frozenset({"max_concurrency", "priority", "queue_class"})
_POOL = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,199}")


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """What to run, how isolated, how many at once and within which limits; whole numbers, times in microseconds."""

    name: str
    origin: str
    kind: str = "function"
    isolation: Isolation = AVAILABLE[0]
    max_concurrency: int | None = 1
    ceiling: int = CEILING
    retries: int = 0
    timeout: int = HOUR
    max_crashes: int = 3
    needs: Mapping[str, int] = field(default_factory=dict, hash=False)
    priority: int | None = None
    queue_class: int | None = None
    tenant: str | None = None

    def __post_init__(self) -> None:
        where = f"agent {check_name('agent', self.name)}"
        if self.isolation not in get_args(Isolation):
            raise _bad("isolation", self.isolation, "process, shared or inline", where)
        for setting, (low, high) in _RANGES.items():
            _check_integer(setting, getattr(self, setting), low, high, where)
        _check_integer("max_concurrency", self.max_concurrency, 1, self.ceiling, where)
        object.__setattr__(self, "needs", _checked_needs(self.needs, where))
        if self.tenant is not None:
            check_name("tenant", self.tenant)

    @property
    def fingerprint(self) -> str:
        """The same for the same definition on every host and in every process."""
        return hashlib.sha256(self.as_json().encode()).hexdigest()[:32]

    def as_json(self) -> str:
        """How the store keeps it."""
        return msgspec.json.encode(self, order="deterministic").decode()

    @classmethod
    def from_json(cls, text: str) -> "AgentDefinition":
        """What `as_json` wrote, checked again."""
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, RecursionError) as error:
            raise UsageError(
                code="bad_definition", what="this is not the definition of an agent", found=complaint(error)
            ) from None


class AgentOptions(TypedDict, total=False):
    """What `@agent` takes."""

    name: str
    isolation: Isolation
    max_concurrency: int | None
    ceiling: int
    retries: int
    timeout: Duration
    max_crashes: int
    needs: Mapping[str, int]
    priority: int | str
    queue_class: QueueClass | str
    tenant: str


class Agent(Generic[P, R]):
    """A function that jobs can run. Calling it calls the function; submitting it makes a job."""

    __name__: str

    def __init__(self, function: Callable[P, R], definition: AgentDefinition, place: Place) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.definition = definition
        self.place = place

    @property
    def name(self) -> str:
        return self.definition.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<agent {self.name} from {self.definition.origin}>"


@overload
def agent(function: Callable[P, R], /) -> Agent[P, R]: ...
@overload
def agent(**options: Unpack[AgentOptions]) -> Callable[[Callable[P, R]], Agent[P, R]]: ...
def agent(function: Callable[P, R] | None = None, /, **options: Unpack[AgentOptions]) -> object:
    """Makes an agent of a function and registers it, with or without options.

    Without `isolation=` an agent runs `inline`, in the node's own process: until nodes start worker processes this is
    the only kind there is. `max_concurrency` is 1 unless said otherwise; None means no limit of its own. `needs` names
    the pools a job of this agent holds while it runs, such as `{"lock:deploy": 1}`. A function made inside another
    function takes the place of one made there before; name each with `name=` where several live side by side.
    """
    if function is not None:
        return registry.add(_make(function, options))
    return lambda decorated: registry.add(_make(decorated, options))


def as_agent(function: Callable[P, R] | Agent[P, R]) -> Agent[P, R]:
    """The agent that a function is; a plain function becomes one with the default settings."""
    if isinstance(function, Agent):
        return function
    _check_function(function)
    known = registry.find(name_of(function), origin_of(function))
    if known is not None and known.function is function:
        return cast(Agent[P, R], known)
    return registry.add(_make(function, {}))


def _make(function: Callable[P, R], options: AgentOptions) -> Agent[P, R]:
    _check_function(function)
    known = AgentOptions.__annotations__
    for option in options:
        if option not in known:
            likely = closest(option, known)
            raise UsageError(
                code="unknown_option",
                what=f"an agent has no option {shown(option)}",
                where=str(place_of(function)),
                allowed=", ".join(known),
                todo=f"did you mean {likely[0]}?" if likely else "",
            )
    try:
        return Agent(function, _define(function, options), place_of(function))
    except Problem as problem:
        raise as_error(problem) from None


def _define(function: Handler, options: AgentOptions) -> AgentDefinition:
    name = check_name("agent", options["name"] if "name" in options else name_of(function))
    settings: dict[str, Any] = {**options, "name": name, "origin": origin_of(function)}
    if "timeout" in options:
        settings["timeout"] = parse_duration(options["timeout"], field=f"agent {name}, timeout", minimum=1)
    if "priority" in options:
        settings["priority"] = parse_priority(options["priority"])
    if "queue_class" in options:
        settings["queue_class"] = int(parse_queue_class(options["queue_class"]))
    definition = AgentDefinition(**settings)
    if definition.isolation not in AVAILABLE:
        raise UsageError(
            code="isolation_unavailable",
            what=f"this version cannot run agents with isolation {definition.isolation}",
            where=f"agent {name}",
            found=definition.isolation,
            allowed=", ".join(AVAILABLE),
            todo=f'write isolation="{AVAILABLE[0]}"',
        )
    return definition


def _check_function(function: object) -> None:
    if isinstance(function, Agent):
        raise UsageError(code="not_a_function", what="this is an agent already", found=function.name)
    if isinstance(function, type) or not callable(function):
        raise UsageError(
            code="not_a_function",
            what="an agent is made of a function",
            found=shown(function),
            allowed="def, async def",
        )


def _checked_needs(needs: object, where: str) -> dict[str, int]:
    if not isinstance(needs, Mapping):
        raise _bad("needs", needs, 'units by pool, such as {"lock:deploy": 1}', where)
    for pool, units in needs.items():
        if not isinstance(pool, str) or not _POOL.fullmatch(pool):
            allowed = "1 to 200 of A-Z a-z 0-9 _ . : / - beginning with a letter"
            raise _bad("the name of a pool in needs", pool, allowed, where)
        _check_integer(f"needs[{pool}]", units, 1, _MOST, where)
    return dict(needs)


def _check_integer(setting: str, value: object, low: int, high: int, where: str) -> None:
    if value is None and setting in _MAY_BE_NONE:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        allowed = f"an integer, {low} to {high}"
        if setting == "max_concurrency":
            allowed += ", or None for no limit of its own"
            if high == CEILING:
                allowed += "; ceiling=N allows more"
        raise _bad(setting, value, allowed, where)


def _bad(setting: str, value: object, allowed: str, where: str) -> UsageError:
    return UsageError(
        code="bad_setting", what=f"{setting} cannot be this", where=where, found=shown(value), allowed=allowed
    )
