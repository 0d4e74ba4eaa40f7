"""Admission: which demands still fit under the limits, decided against what is held and never counted."""

from collections.abc import Iterable, Mapping

from paceline.core.problem import Problem

Demand = Mapping[str, int]
"""What a job must hold to run: units (at least one) by the name of the pool."""


class Admission:
    """The room of one pass over the ready jobs; a pool without a limit has room for everybody."""

    __slots__ = ("_kept", "_open")

    def __init__(self, limits: Mapping[str, int], held: Mapping[str, int]) -> None:
        self._open = {pool: limit - held.get(pool, 0) for pool, limit in limits.items()}
        self._kept: dict[str, int] = {}

    def admit(self, demand: Demand) -> str | None:
        """Takes all demanded units, or none and names the first full pool."""
        full = self.refusal(demand)
        if full is None:
            room = self._open
            for pool, units in demand.items():
                if pool in room:
                    room[pool] -= units
        return full

    def refusal(self, demand: Demand) -> str | None:
        """The first pool by name that has no room for this demand; takes nothing."""
        room = self._open
        for pool, units in demand.items():
            if room.get(pool, units) < units:
                return min(name for name, wanted in demand.items() if room.get(name, wanted) < wanted)
        return None

    def keep(self, demand: Demand) -> None:
        """Reserves what a refused job will need, as far as it is there; keeping the same twice changes nothing.

        A job that waits for a pool in which nothing at all is left is not passed over for its size and keeps
        nothing: otherwise an agent at its own limit would idle what everybody shares.
        """
        finite = [(pool, units) for pool, units in demand.items() if pool in self._open]
        if any(self._open[pool] + self._kept.get(pool, 0) <= 0 for pool, _ in finite):
            return
        for pool, units in finite:
            more = units - self._kept.get(pool, 0)
            if more > 0:
                self._open[pool] -= more
                self._kept[pool] = units

    def room(self, pool: str) -> int | None:
        """Units that may still be admitted; None where there is no limit."""
        return max(0, self._open[pool]) if pool in self._open else None

    def copy(self) -> "Admission":
        """The same room, to try something on."""
        twin = Admission({}, {})
        twin._open, twin._kept = dict(self._open), dict(self._kept)
        return twin


def never_fits(demand: Demand, limits: Mapping[str, int]) -> str | None:
    """The first pool by name whose limit is below the demand: waiting cannot help."""
    return min((pool for pool, units in demand.items() if limits.get(pool, units) < units), default=None)


LOCK = "lock:"
"""Pools of this name are locks: one unit, over all nodes, without being declared."""


def with_locks(needs: Iterable[str], limits: Mapping[str, int]) -> dict[str, int]:
    """The limits that hold for these pools: a lock is a pool of one."""
    return {**{pool: 1 for pool in needs if pool.startswith(LOCK)}, **limits}


def refuse_needs(agent: str, needs: Demand, limits: Mapping[str, int]) -> None:
    """Raises when an agent needs a pool that nobody has declared, or more of it than there will ever be."""
    known = with_locks(needs, limits)
    unknown = sorted(pool for pool in needs if pool not in known)
    if unknown:
        raise Problem(
            code="unknown_pool",
            what=f"agent {agent} needs a pool without a limit",
            found=", ".join(unknown),
            allowed=", ".join(sorted(limits)) or "lock:NAME",
            todo=f"declare it: [limits] {unknown[0]} = N, or name a lock: lock:{unknown[0]}",
        )
    full = never_fits(needs, known)
    if full is not None:
        raise Problem(
            code="never_fits",
            what=f"agent {agent} needs more than there will ever be",
            found=f"{needs[full]} of {full}",
            allowed=f"up to {known[full]}",
            todo="need less, or raise the limit",
        )
