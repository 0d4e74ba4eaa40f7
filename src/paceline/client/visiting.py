"""Submissions in an open transaction of the application: the jobs exist if, and only if, it commits."""

from paceline.client.bound import Bound
from paceline.core.names import shown
from paceline.core.problem import Problem
from paceline.core.submission import Wish
from paceline.store.protocol import Store, Visits
from paceline.units.visit import draft, plan, write


async def accept_in(
    store: Store, visits: Visits | None, connection: object, wishes: list[Wish], bound: Bound
) -> list[int]:
    """All wishes or none of them; names and bounds are looked after in a transaction of our own, which is short."""
    if visits is None:
        raise Problem(
            code="bad_connection", what="only a store on Postgres can be written in a transaction of yours",
            where="connection", found=shown(connection), allowed="a store at postgresql://…",
        )  # fmt: skip
    visits.check(connection)
    prepared = await store.transact(lambda tx: plan(tx, wishes, bound.check))
    return await visits.carry_out(
        connection, lambda tx: draft(tx, wishes, prepared), lambda tx, asked: write(tx, wishes, prepared, asked)
    )
