"""What agents say is kept, and what is not kept holds nobody up."""

from library.stage import play
from paceline import Context, Paceline, TransientError, agent
from paceline.client.following import logs_of


@agent(isolation="inline", max_concurrency=None, retries=1)
async def speak_and_fail(ctx: Context) -> int:
    """Never awaits: it is over within the turn of the event loop in which it speaks."""
    ctx.log(f"try {ctx.attempt}")
    if ctx.attempt == 1:
        raise TransientError("not yet")
    return ctx.attempt


def test_the_words_of_code_that_never_awaits_are_kept_and_its_retry_is_found(url: str) -> None:
    async def act(pl: Paceline) -> None:
        job = await pl.submit(speak_and_fail)
        assert await job.result(timeout=10) == 2
        lines = await pl.client.store.read(lambda tx: logs_of(tx, job.number))
        assert [line.text for line in lines] == ["try 1", "try 2"]

    play(url, act)
