"""The options of a submission, the same for every command that makes jobs."""

from typing import Annotated, Literal

from paceline.cli.arguments import Option

After = Annotated[list[str] | None, Option("waits for this job, or for any end of it: j7:finished", metavar="JOB")]
Deadline = Annotated[str | None, Option("give up after this, waiting included: 10m", metavar="TIME")]
Delay = Annotated[str | None, Option("start no earlier than in: 2s", metavar="TIME")]
Key = Annotated[str | None, Option("the same key and input are the same job")]
Priority = Annotated[str | None, Option("critical, high, normal, low, background, or 0 (first) to 100")]
Queue = Annotated[Literal["interactive", "standard", "batch"] | None, Option("which jobs it queues among")]
Retries = Annotated[int | None, Option("how often a failure that may pass is tried again", metavar="N")]
Session = Annotated[str | None, Option("jobs of one session run in order", metavar="NAME")]
Tenant = Annotated[str | None, Option("on whose behalf", metavar="NAME")]
Timeout = Annotated[str | None, Option("end it when it has run for: 5m", metavar="TIME")]


def priority_of(word: str | None) -> int | str | None:
    """A name, or a number where it is one."""
    return int(word) if word is not None and word.isascii() and word.isdigit() else word


def edges_of(words: list[str] | None) -> list[object]:
    """`j7` must complete; `j7:finished` may end as it likes."""
    return [(job, wants) if sign else job for job, sign, wants in (word.partition(":") for word in words or ())]
