"""`paceline run`: one job from submission to result, on a node in this process."""

import asyncio
import sys
import time
from contextlib import redirect_stdout, suppress
from typing import Annotated, Any

from paceline.agents.definition import Agent
from paceline.agents.function import bind
from paceline.agents.loading import load_file, load_file_function
from paceline.agents.registry import registry
from paceline.app import Paceline
from paceline.cli import inputs, terms
from paceline.cli.arguments import Argument
from paceline.cli.following import Following
from paceline.cli.loops import INTERRUPTED, Interrupts, hopeless, run_here, stop_at_once
from paceline.cli.render import counted
from paceline.cli.shell import Shell
from paceline.client.job import Job
from paceline.core.names import shown
from paceline.errors import JobCancelled, JobFailed, JobTimedOut, PacelineError, StoreError, UsageError

LOOK = 0.1
"""Seconds between two looks at the job."""


def run(
    shell: Shell,
    target: Annotated[str, Argument("file.py:function, or the name of an agent of --app", "TARGET")],
    input: Annotated[str | None, Argument(inputs.HELP, "INPUT")] = None,
    priority: terms.Priority = None,
    queue_class: terms.Queue = None,
    tenant: terms.Tenant = None,
    after: terms.After = None,
    key: terms.Key = None,
    delay: terms.Delay = None,
    timeout: terms.Timeout = None,
    deadline: terms.Deadline = None,
    retries: terms.Retries = None,
    session: terms.Session = None,
) -> int:
    """Submits one job, runs it here and prints its result; progress and logs go to standard error.

    The job is in the store like any other: `paceline show` finds it later. Ctrl-C gives it back to the queue, where a
    node goes on with it; again: the end, at once.

    Examples:
      paceline run agents.py:double 21
      paceline run agents.py:research '{"topic": "tides"}' --retries 2 --timeout 5m
      paceline --app my.agents run summarize @report.txt
      echo '[1, 2, 3]' | paceline run agents.py:total - -o json
    """
    shell.load_apps()
    agent = _agent(target, shell)
    value = inputs.read_input(input, bind(agent).check_input)
    options = {
        "priority": terms.priority_of(priority), "queue_class": queue_class, "tenant": tenant, "key": key,
        "after": terms.edges_of(after), "delay": delay, "timeout": timeout, "deadline": deadline, "retries": retries,
        "session": session,
    }  # fmt: skip
    return run_here(lambda: _run(shell, agent, value, options))


def _agent(target: str, shell: Shell) -> Agent[..., Any]:
    if ":" in target:
        return load_file_function(target)
    if target.endswith(".py"):
        names = [name for name, one in vars(load_file(target)).items() if isinstance(one, Agent)]
        raise UsageError(
            code="bad_target", what="which function of this file?", where=target,
            allowed=", ".join(f"{target}:{name}" for name in names) or f"{target}:function",
        )  # fmt: skip
    if not shell.apps:
        raise UsageError(
            code="bad_target", what="nothing says where this agent's code is", found=shown(target),
            allowed="file.py:function, or --app MODULE and the name of an agent in it",
            todo="to let a running node do it: paceline submit",
        )  # fmt: skip
    return registry.named(target)


async def _run(shell: Shell, agent: Agent[..., Any], value: object, options: dict[str, Any]) -> int:
    interrupts = Interrupts()
    try:
        # What the agent's code prints belongs beside the result, not into it.
        with redirect_stdout(sys.stderr):
            result = await _result_of(shell, agent, value, options, interrupts)
    finally:
        interrupts.restore()
    if interrupts.first.is_set():
        return INTERRUPTED
    if isinstance(result, PacelineError):
        raise result
    if isinstance(result, str) and not shell.screen.as_json:
        shell.screen.lines(result)
    else:
        shell.screen.json(result)
    return 0


async def _result_of(
    shell: Shell, agent: Agent[..., Any], value: object, options: dict[str, Any], interrupts: Interrupts
) -> object:
    app = Paceline(shell.store, agents=[agent])
    await app.start()
    try:
        job = await app.submit(agent, value, **options)
        result = await _follow(shell, app, job, agent.name, interrupts)
        if interrupts.first.is_set():
            await _give_back(shell, app, job)
        elif isinstance(result, StoreError):
            await stop_at_once(app)
        else:
            # The code of a job that was ended from outside may run on in its thread; it ends with this process.
            own = isinstance(result, JobCancelled | JobTimedOut)
            await _let_others_finish(shell, app, interrupts, int(own))
        return result
    finally:
        await app.stop(drain=0)


async def _follow(shell: Shell, app: Paceline, job: Job, name: str, interrupts: Interrupts) -> object:
    """The result, or the error that says how the job ended; None when Ctrl-C came first."""
    waiting = asyncio.ensure_future(app.results([job], return_exceptions=True))
    stopped = asyncio.ensure_future(interrupts.first.wait())
    try:
        with Following(shell.screen, app, job, name) as following:
            while not waiting.done() and not stopped.done():
                await asyncio.wait({waiting, stopped}, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
                if (trouble := hopeless(app)) is not None:
                    return trouble
                await following.look()
        result = waiting.result()[0] if waiting.done() else None
        if isinstance(result, JobFailed):
            result.where = _line_of(result)
        return result
    finally:
        waiting.cancel()
        stopped.cancel()


async def _give_back(shell: Shell, app: Paceline, job: Job) -> None:
    """Ctrl-C: the job returns to the queue, unless it ended in the same moment."""
    assert app.node is not None
    await app.node.stop(drain=0)
    state = await job.state()
    if state.ended:
        shell.screen.note(f"interrupted, but {job.id} is {state.word.replace('_', ' ')}: paceline show {job.id}")
    else:
        shell.screen.note(
            f"interrupted: {job.id} is back in the queue and a node goes on with it (paceline up --app ...);"
            f" to end it: paceline cancel {job.id}"
        )


async def _let_others_finish(shell: Shell, app: Paceline, interrupts: Interrupts, own: int) -> None:
    """Other jobs of this agent may have been taken up meanwhile; they are not thrown away half done."""
    node = app.node
    assert node is not None
    node.stop_claiming()
    others = node.running - own
    if others <= 0:
        return
    shell.screen.note(
        f"finishing {counted(others, 'other job')} of this agent, begun here meanwhile (Ctrl-C gives back what runs)"
    )
    end = time.monotonic() + app.settings.drain / 1e6
    while node.running > own and time.monotonic() < end and not interrupts.first.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(interrupts.first.wait(), LOOK)


def _line_of(failure: JobFailed) -> str:
    """The last line of the agent's code that was reached, from the trace that the store keeps."""
    trace = getattr(failure.error, "trace", None) or ""
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith('File "')]
    return lines[-1] if lines else failure.where
