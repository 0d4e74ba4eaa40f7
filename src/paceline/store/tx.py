"""One transaction as a unit of work sees it: the rooms, and one `now` for all of them."""

from collections.abc import Callable
from typing import TypeVar

from paceline.store.driver import Driver
from paceline.store.rooms.company import CompanyRoom
from paceline.store.rooms.edges import EdgeRoom
from paceline.store.rooms.events import EventRoom
from paceline.store.rooms.guards import GuardRoom
from paceline.store.rooms.history import HistoryRoom
from paceline.store.rooms.jobs import JobRoom
from paceline.store.rooms.lanes import LaneRoom
from paceline.store.rooms.leaders import LeaderRoom
from paceline.store.rooms.listing import ListingRoom
from paceline.store.rooms.nodes import NodeRoom
from paceline.store.rooms.outcomes import OutcomeRoom
from paceline.store.rooms.pools import PoolRoom
from paceline.store.rooms.reasons import ReasonRoom
from paceline.store.rooms.sessions import SessionRoom
from paceline.store.rooms.submissions import SubmissionRoom
from paceline.store.rooms.visits import VisitRoom
from paceline.store.rooms.watch import WatchRoom
from paceline.store.statements import Statements

T = TypeVar("T")


class Tx:
    """Rooms over one connection; a unit of work touches nothing else.

    `again`: the unit has run before and nothing of it was committed, so what it left in memory may be wrong.
    """

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self.now = 0
        self.again = False
        self.guards = GuardRoom(driver, sql)
        self.events = EventRoom(driver, sql)
        self.jobs = JobRoom(driver, sql, self.events)
        self.watch = WatchRoom(driver, sql)
        self.outcomes = OutcomeRoom(driver, sql)
        self.edges = EdgeRoom(driver, sql)
        self.lanes = LaneRoom(driver, sql)
        self.nodes = NodeRoom(driver, sql)
        self.company = CompanyRoom(driver, sql)
        self.leaders = LeaderRoom(driver, sql)
        self.pools = PoolRoom(driver, sql)
        self.submissions = SubmissionRoom(driver, sql, self.events)
        self.sessions = SessionRoom(driver, sql)
        self.visits = VisitRoom(driver, sql)
        self.listing = ListingRoom(driver, sql)
        self.reasons = ReasonRoom(driver, sql)
        self.history = HistoryRoom(driver, sql)


Unit = Callable[[Tx], T]
"""Plain synchronous code over the store's verbs; it may run again, `tx.again`, when nothing of it was committed."""
