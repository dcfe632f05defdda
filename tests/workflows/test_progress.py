from __future__ import annotations

from fast_agent.workflows.plan import Step, Task
from fast_agent.workflows.progress import ALL_TOGETHER, LONGEST, Progress, Result

DIG = Task("ann", "dig")


def test_results_are_written_with_their_step_agent_and_task() -> None:
    progress = Progress()
    progress.add(
        Step("", (DIG, DIG)), [Result(DIG, "a hole"), Result(DIG, "no spade", failed=True)]
    )
    progress.give_up([Step("", (DIG,))])
    progress.add(Step("", (DIG,)), [Result(DIG, "")])
    done = '<result step="1" agent="ann" task="dig">\na hole\n</result>'
    failed = '<failure step="1" agent="ann" task="dig">\nno spade\n</failure>'
    silent = '<result step="2" agent="ann" task="dig">\n[no text]\n</result>'
    assert progress.written(failures=True) == f"{done}\n{failed}\n{silent}"
    assert progress.written(failures=False) == f"{done}\n{silent}"


def test_one_result_is_cut_at_its_bound() -> None:
    progress = Progress()
    progress.add(Step("", (DIG,)), [Result(DIG, "x" * 10_000_000)])
    assert LONGEST < len(progress.written(failures=True)) < LONGEST + 200


def test_many_results_are_cut_to_a_bound_for_all() -> None:
    progress = Progress()
    for _ in range(100):
        progress.add(Step("", (DIG,)), [Result(DIG, "x" * LONGEST)])
    written = progress.written(failures=True)
    assert ALL_TOGETHER < len(written) < ALL_TOGETHER * 1.1
    assert written.count("<result ") == written.count("</result>") == 100


def test_nothing_done_is_nothing_written() -> None:
    progress = Progress()
    assert (progress.written(failures=True), progress.any_tried, progress.any_done) == (
        "",
        False,
        False,
    )
    progress.add(Step("", (DIG,)), [Result(DIG, "no spade", failed=True)])
    assert (progress.any_tried, progress.any_done) == (True, False)


def test_the_record_is_short_and_complete() -> None:
    progress = Progress()
    progress.add(Step("s", (DIG,)), [Result(DIG, "x" * 100_000)])
    progress.give_up([Step("t", (DIG,))])
    first, second = progress.record()
    assert len(str(first)) < 3_000
    task = {"agent": "ann", "description": "dig", "status": "not_run"}
    assert second == {"description": "t", "tasks": [task]}
