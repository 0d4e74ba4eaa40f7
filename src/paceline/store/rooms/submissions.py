"""Idempotency keys, sessions, and submissions that are written in chunks and become visible in one step."""

from collections.abc import Sequence

from paceline.events import Kind
from paceline.store.driver import Driver, NamedBindings, as_list
from paceline.store.rooms.events import EventRoom
from paceline.store.statements import Statements


class SubmissionRoom:
    """The verbs of the door."""

    def __init__(self, driver: Driver, sql: Statements, events: EventRoom) -> None:
        self._driver = driver
        self._sql = sql
        self._events = events

    def keyed(self, tenant: int, agent: int, key: str) -> tuple[int, str] | None:
        """(job, input) that was submitted under a key before."""
        found = self._driver.rows(self._sql["submissions.key"], {"tenant": tenant, "agent": agent, "key": key})
        return (found[0][0], found[0][1]) if found else None

    def remember_key(self, tenant: int, agent: int, key: str, job: int) -> None:
        """From now on the key answers this job; `keyed` has said in this transaction that it is free."""
        arguments: NamedBindings = {"tenant": tenant, "agent": agent, "key": key, "job": job}
        self._driver.write(self._sql["submissions.add_key"], arguments)

    def join_session(self, tenant: int, name: str, job: int) -> tuple[int, int | None]:
        """Makes a job the last of its session, new or not; answers the session and the job that was last before."""
        session, last = self._driver.rows(self._sql["submissions.session"], {"tenant": tenant, "name": name})[0]
        self._driver.write(self._sql["submissions.advance_session"], {"id": session, "job": job})
        return session, last

    def open_batch(self, now: int) -> int:
        """A submission that takes more than one unit of work; its number, taken from the time, never comes again."""
        batch = max(now, int(self._driver.rows(self._sql["submissions.newest_batch"])[0][0]) + 1)
        self._driver.write(self._sql["submissions.open_batch"], {"id": batch, "now": now})
        return batch

    def is_open(self, batch: int) -> bool:
        """The submission is still being written: neither accepted nor swept away, and not before this unit ends."""
        return bool(self._driver.rows(self._sql["submissions.is_open"], {"id": batch}))

    def publish_batch(self, batch: int, now: int) -> bool:
        """Accepts the whole submission; False when it was swept away, or accepted before."""
        return self._driver.write(self._sql["submissions.publish_batch"], {"id": batch, "now": now}) == 1

    def abandon_batch(self, batch: int) -> bool:
        """From here on nobody can add to the submission or accept it; False when it was accepted before."""
        return self._driver.write(self._sql["submissions.abandon_batch"], {"id": batch}) == 1

    def close_batch(self, batch: int) -> None:
        """Every job of the submission is visible, or gone."""
        self._driver.write(self._sql["submissions.close_batch"], {"id": batch})

    def unfinished_batches(self, before: int) -> list[tuple[int, int | None]]:
        """(batch, published_at) of the first that is accepted and not yet visible or, with 0 or None, abandoned.

        One that another janitor has in hand is passed over.
        """
        rows = self._driver.rows(self._sql["submissions.unfinished_batches"], {"before": before})
        return [(row[0], row[1]) for row in rows]

    def staged(self, batch: int, most: int) -> list[int]:
        """Up to `most` jobs of a batch that nobody can see yet, by id."""
        rows = self._driver.rows(self._sql["submissions.staged"], {"batch": batch, "most": most})
        return [row[0] for row in rows]

    def publish(self, staged: Sequence[int], now: int) -> list[int]:
        """Makes staged jobs visible, queued or blocked; answers the blocked ones.

        Of an accepted submission only, by who holds these jobs and their parents. One that is visible already stays as
        it is.
        """
        first = self._events.reserve(len(staged))
        numbered: NamedBindings = {"rows": as_list([(job, first + place) for place, job in enumerate(staged)])}
        ready = self._driver.rows(self._sql["submissions.publish_ready"], {**numbered, "now": now})
        blocked = self._driver.rows(self._sql["submissions.publish_blocked"], numbered)
        for rows, kind in ((ready, int(Kind.JOB_QUEUED)), (blocked, int(Kind.JOB_BLOCKED))):
            self._events.append([(event, job, seq, prev, now, kind, 0, None) for job, seq, prev, event in rows])
        return [row[0] for row in blocked]

    def forget(self, staged: Sequence[int]) -> None:
        """Removes staged jobs of an abandoned submission."""
        arguments: NamedBindings = {"ids": as_list(staged)}
        for name in ("submissions.forget_edges", "submissions.forget_inputs", "submissions.forget_jobs"):
            self._driver.write(self._sql[name], arguments)
