"""`paceline submit`, `wait`, `cancel`, `retry` and `dead`: what people do with jobs."""

import sys
import time
from typing import Annotated

from paceline.cli import inputs, terms
from paceline.cli.arguments import Argument, Option
from paceline.cli.looking import Agent, JobIds, Tenant, at_least, line_as_json, looking, resolve
from paceline.cli.render import Cell, ago, state_cell
from paceline.cli.shell import Shell
from paceline.client.direct import Direct
from paceline.client.explaining import Explainer
from paceline.client.finding import Target, find_target, resolve_id
from paceline.client.job import Outcome, value_of
from paceline.client.reading import dead as read_dead
from paceline.core.durations import parse_duration
from paceline.core.explanation import Why
from paceline.core.lifecycle import State
from paceline.core.names import shown
from paceline.core.problem import Problem
from paceline.errors import UsageError, as_error
from paceline.opening import Opened

REFUSED, TIMED_OUT = 4, 124
LOOK_EVERY = 0.05
TELL_EVERY = 0.2


def submit(
    shell: Shell,
    agent: Annotated[str, Argument("an agent the store knows, file.py:function, or one of --app", "AGENT")],
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
    parent: Annotated[str | None, Option("the job that this one belongs to", metavar="JOB")] = None,
    wait: Annotated[bool, Option("wait for its end and print the result")] = False,
) -> int:
    """Puts a job into the queue and prints its id; a node (paceline up) runs it.

    Examples:
      paceline submit double 21
      paceline submit agents.py:research '{"topic": "tides"}' --priority high --wait
      paceline submit report @data.json --after 41 --after 42:finished --key report-7
    """
    with_code = ":" in agent or bool(shell.apps)
    with looking(shell, create=with_code) as opened:
        target = _target(shell, opened, agent, with_code)
        value = inputs.read_input(input, target.check)
        options = {
            "priority": terms.priority_of(priority), "queue_class": queue_class, "tenant": tenant, "key": key,
            "delay": delay, "timeout": timeout, "deadline": deadline, "retries": retries, "session": session,
            "parent": _job(opened, parent),
        }  # fmt: skip
        edges = [
            (_job(opened, job), wants or "completed") for job, _, wants in (word.partition(":") for word in after or [])
        ]
        before = opened.store.clock.now()
        job = _direct(shell, opened).submit(target, value, edges, options)
        known = key is not None and opened.store.look(lambda tx: tx.jobs.rows([job]))[0].created_at < before
        if not wait:
            return _acknowledge(shell, opened, job, known)
        shell.screen.note(f"j{job}" + (": the key was used before, this is that job" if known else ""), "dim")
        _wait_for(shell, opened, [job], None, any_one=False)
        return _print_result(shell, opened, job)


def wait(
    shell: Shell,
    jobs: JobIds,
    timeout: Annotated[str | None, Option("give up after this: 30s", metavar="TIME")] = None,
    any: Annotated[bool, Option("until one of them has ended")] = False,
) -> int:
    """Waits for jobs to end. Exit code 0 when all completed, 1 when one ended otherwise, 124 when the time was up.

    Examples:
      paceline wait j41 j42
      paceline wait 42 --timeout 10m && echo done
    """
    patience = None if timeout is None else parse_duration(timeout, field="--timeout") / 1e6
    with looking(shell) as opened:
        numbers = resolve(opened, jobs)
        over = _wait_for(shell, opened, numbers, patience, any_one=any)
        found = opened.store.look(lambda tx: tx.outcomes.results(numbers))
    ended = {job: state for job, (state, _, _) in found.items() if state.ended}
    reported = [job for job in numbers if job in ended] if any or not over else numbers
    _tell(shell, [(job, found[job][0], _in_short(Outcome(*found[job]))) for job in reported])
    if over:
        return TIMED_OUT
    return 0 if all_completed(ended) else 1


def all_completed(ended: dict[int, State]) -> bool:
    """Every one of them has a result."""
    return {*ended.values()} <= {State.COMPLETED}


def cancel(shell: Shell, jobs: JobIds) -> int:
    """Ends jobs and everything they started; what had ended stays as it is (exit code 4).

    Examples:
      paceline cancel j42
      paceline cancel 41 42 43
    """
    with looking(shell) as opened:
        numbers, direct = resolve(opened, jobs), _direct(shell, opened)
        ended = {job: direct.cancel(job) for job in numbers}
        rows = {row.id: row for row in opened.store.look(lambda tx: tx.jobs.rows(numbers))}
    done: set[int] = set()
    told = []
    for job in numbers:
        others = len(ended[job]) - 1
        more = f"{others:,} more that belonged to it or needed it ended too" if others > 0 else ""
        still = "its code is being stopped" if rows[job].node is not None else ""
        if ended[job] or job in done:
            told.append((job, State.CANCELLED, "; ".join(part for part in (more, still) if part)))
        else:
            told.append((job, rows[job].state, "had ended before"))
        done.update(ended[job])
    _tell(shell, told)
    return 0 if done.issuperset(numbers) else REFUSED


def retry(
    shell: Shell,
    jobs: JobIds,
    input: Annotated[str | None, Option(f"another input: {inputs.HELP}", metavar="INPUT")] = None,
) -> int:
    """Tries dead jobs again, and with them the jobs that failed only because of them.

    Examples:
      paceline retry j42
      paceline retry j42 --input '{"topic": "moons"}'
    """
    if input is not None and len(jobs) > 1:
        raise UsageError(code="bad_usage", what="--input belongs to one job", found=f"{len(jobs)} jobs")
    value = inputs.read_input(input)
    code, told = 0, []
    with looking(shell) as opened:
        direct = _direct(shell, opened)
        for job in resolve(opened, jobs):
            try:
                others = len(direct.retry(job, input=value, changed=input is not None)) - 1
            except Problem as problem:
                known = as_error(problem)
                shell.screen.problem(known)
                code = code or known.exit_code
            else:
                told.append((job, State.QUEUED, f"{others:,} more that failed because of it too" if others else ""))
    _tell(shell, told)
    return code


def dead(
    shell: Shell,
    agent: Agent = None,
    tenant: Tenant = None,
    number: Annotated[int, Option("how many", "-n", "N")] = 50,
) -> int:
    """Lists jobs that failed or timed out, the newest first.

    Examples:
      paceline dead
      paceline dead --agent writer -o json
    """
    at_least("-n", number)
    with looking(shell) as opened:
        lines, bodies, now = opened.store.look(
            lambda tx: (
                found := read_dead(tx, agent=agent, tenant=tenant, limit=number),
                tx.outcomes.results([line.id for line in found]),
                tx.now,
            )
        )
    outcomes = {job: Outcome(*body) for job, body in bodies.items()}
    if shell.screen.as_json:
        shell.screen.json(
            [
                {
                    **line_as_json(line),
                    "error": {"type": outcomes[line.id].error.type, "message": outcomes[line.id].error.message},
                    "class": _class_of(outcomes[line.id]) or None,
                }
                for line in lines
            ]
        )
        return 0
    rows = [
        (
            Cell(line.name, "bold"), state_cell(line.state.word), line.agent, ago(now, line.ended_at),
            str(line.attempt + 1) if line.epoch else "", _class_of(outcomes[line.id]),
            _in_short(outcomes[line.id]),
        )
        for line in lines
    ]  # fmt: skip
    shell.screen.table(("id", "state", "agent", "ended", "tries", "class", "error"), rows, empty="no dead jobs")
    if lines:
        shell.screen.note("paceline show ID says more, paceline retry ID tries one again", "dim")
    return 0


def _target(shell: Shell, opened: Opened, word: str, with_code: bool) -> Target:
    if not with_code:
        if word.endswith(".py"):
            raise UsageError(
                code="bad_target", what="which function of this file?", found=shown(word), allowed=f"{word}:function"
            )
        return opened.store.look(lambda tx: find_target(tx, word))
    from paceline.agents.loading import load_file_function
    from paceline.agents.registry import registry
    from paceline.app import registered  # late: code of agents is needed for this alone

    shell.load_apps()
    return registered(opened.store, load_file_function(word) if ":" in word else registry.named(word))


def _direct(shell: Shell, opened: Opened) -> Direct:
    return Direct(opened.store, opened.tell, max_pending=shell.settings().max_pending)


def _job(opened: Opened, word: str | None) -> int | None:
    return None if word is None else opened.store.look(lambda tx: resolve_id(tx, word))


def _acknowledge(shell: Shell, opened: Opened, job: int, known: bool) -> int:
    """The id alone on standard output; beside it what may surprise."""
    why = opened.store.look(lambda tx: Explainer(tx, counting=False).explain(job))
    if shell.screen.as_json:
        shell.screen.json(
            {"id": f"j{job}", "state": why.state.word, "new": not known, "why": why.code.value, "text": why.text}
        )
        return 0
    shell.screen.line(f"j{job}")
    if known:
        shell.screen.note(f"the key was used before: this is that job, {why.state.word.replace('_', ' ')}", "dim")
    if why.code in (Why.NO_NODE, Why.NEVER_FITS, Why.DEPENDENCY_FAILED):
        shell.screen.note(f"{why.text}" + (f"; {why.todo}" if why.todo else ""), "yellow")
    return 0


def _wait_for(shell: Shell, opened: Opened, jobs: list[int], patience: float | None, *, any_one: bool) -> bool:
    """Waits until they have ended; True when the time was up first."""
    began, told_at = time.monotonic(), 0.0
    live = shell.screen.live(sys.stderr)
    try:
        while True:
            states = dict(opened.store.look(lambda tx: tx.outcomes.states(jobs)))
            ended = sum(state.ended for state in states.values())
            if ended == len(jobs) or (any_one and ended):
                return False
            passed = time.monotonic() - began
            if patience is not None and passed >= patience:
                return True
            if live and passed - told_at >= TELL_EVERY:
                told_at = passed
                running = sum(state is State.RUNNING for state in states.values())
                sys.stderr.write(f"\r\x1b[K{ended} of {len(jobs)} ended, {running} running, {passed:.0f} s")
                sys.stderr.flush()
            time.sleep(LOOK_EVERY if patience is None else min(LOOK_EVERY, patience - passed))
    finally:
        if live:
            sys.stderr.write("\r\x1b[K")


def _print_result(shell: Shell, opened: Opened, job: int) -> int:
    outcome = Outcome(*opened.store.look(lambda tx: tx.outcomes.results([job]))[job])
    result = value_of(job, outcome)
    if isinstance(result, str) and not shell.screen.as_json:
        shell.screen.lines(result)
    else:
        shell.screen.json(result)
    return 0


def _class_of(outcome: Outcome) -> str:
    error = outcome.error
    return error.failure_class if error.type and not error.chain else ""


def _in_short(outcome: Outcome) -> str:
    error = outcome.error
    if error.chain:
        return error.message
    return f"{error.type}: {error.message}" if error.type else outcome.reason or ""


def _tell(shell: Shell, answers: list[tuple[int, State, str]]) -> None:
    """One line for each job."""
    if shell.screen.as_json:
        shell.screen.json([{"id": f"j{job}", "state": state.word, "detail": detail} for job, state, detail in answers])
        return
    for job, state, detail in answers:
        shown = state_cell(state.word)
        shell.screen.cells(Cell(f"j{job}", "bold"), shown._replace(text=f"{shown.text}:") if detail else shown, detail)
