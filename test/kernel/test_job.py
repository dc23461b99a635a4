"""pullman-stat --job and PULLMAN_REPORT: what is stuck in a job of several processes, and what it did."""

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

import cases
import netns
import railnet

PORT = 7480
SIZE = 4
CULPRIT = 2
case = functools.partial(cases.case, kind=netns.Loopback)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the programs of this test show their counters."""
    path = tmp_path / "counters"
    monkeypatch.setenv("PULLMAN_COUNTERS", str(path))
    return path


def start_job(place, build, how, *, size=SIZE, sides=(0,), host="127.0.0.1", port=PORT, nics="lo", hidden=(),
              **environment):
    """The members by rank, once all are connected to all. Those that are hidden show no counters."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "SLURM", "OMPI"))}
    members = [
        place.start(sides[rank % len(sides)], build / "test/kernel/job-member", CULPRIT, how, stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, text=True,
                    env={**inherited, "PULLMAN_NICS": nics, "PULLMAN_RENDEZVOUS": f"{host}:{port}",
                         "PULLMAN_RANK": str(rank), "PULLMAN_SIZE": str(size), "PULLMAN_PROGRESS": "thread",
                         **({"PULLMAN_COUNTERS": "0"} if rank in hidden else {}), **environment})
        for rank in range(size)]
    for member in members:
        assert member.stdout.readline() == "ready\n"
    return members


def stat(place, build, *options, code=0):
    words = place.command(0, build / "tools/pullman-stat", *options)
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert code in (None, done.returncode), f"{options}: {done.returncode}, {done.stdout}{done.stderr}"
    return done


def find_stuck(place, build, *process):
    return json.loads(stat(place, build, "--job", *process, "--format", "json", "--patience", 2).stdout)


def until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.2)
    return result


def until_named(place, build, *process, waiting=None, **expected):
    """What is said, once one thing that is stuck is as expected."""
    last = []

    def named():
        job = find_stuck(place, build, *process)
        last[:] = [job]
        for one in job["stuck"]:
            if all(one[key] == value for key, value in expected.items()) and waiting in (None, one["waiting"]):
                return job, one
        return None
    try:
        return until(named, f"{expected}, {waiting}")
    except AssertionError as error:
        raise AssertionError(f"{error}: {last}") from None


OTHERS = [rank for rank in range(SIZE) if rank != CULPRIT]


@pytest.mark.parametrize("how, what", [("receive", "its message"), ("send", "its receive")])
@case()
def test_a_program_that_makes_no_calls_is_named_by_its_progress_thread(place, build, folder, how, what):
    start_job(place, build, how)
    job, stuck = until_named(place, build, kind="program", rank=CULPRIT, waiting=OTHERS)
    assert job["size"] == SIZE and not job["silent"], job
    assert stuck["seconds"] >= 1 and f"ranks 0, 1 and 3 wait for {what}" in stuck["sentence"], stuck
    text = stat(place, build, "--job").stdout
    first, second = text.splitlines()[:2]
    assert first.startswith("4 of 4 ranks answer") and second.startswith("  rank 2 is stuck: its program"), text
    assert re.search(rf"^ +{CULPRIT} .* yes +called [0-9.]+ s ago", text, re.M), text


@case()
def test_the_ranks_of_a_barrier_name_the_one_that_they_wait_for(place, build, folder):
    start_job(place, build, "barrier")
    _, stuck = until_named(place, build, kind="program", rank=CULPRIT)
    assert "waits for its part of a barrier" in stuck["sentence"], stuck
    assert stuck["waiting"] == [0], "the others wait for rank 0"


@case()
def test_a_program_without_a_thread_that_makes_no_calls_does_not_answer_and_is_named(place, build, folder):
    members = start_job(place, build, "receive", PULLMAN_PROGRESS="calls")
    job, stuck = until_named(place, build, kind="silent", rank=CULPRIT, waiting=OTHERS)
    assert job["silent"] == [CULPRIT] and len(job["ranks"]) == SIZE - 1, job
    assert f"process {members[CULPRIT].pid} of this host" in stuck["sentence"], stuck
    assert "has no progress thread: its program makes no calls" in stuck["sentence"], stuck
    assert not any(rank["progress_thread"] for rank in job["ranks"]), job


@case()
def test_where_no_process_of_the_host_answers_their_counters_are_shown(place, build, folder):
    members = start_job(place, build, "go-on")
    for member in members:
        member.send_signal(signal.SIGSTOP)
    done = stat(place, build, "--job", "--patience", 2, code=1)
    for member in members:
        member.send_signal(signal.SIGCONT)
    assert "no process of a job answers on this host" in done.stderr, done
    assert all(f"process {member.pid} (job-member" in done.stderr for member in members), done


@case()
def test_a_stopped_rank_does_not_answer_and_another_is_asked(place, build, folder):
    members = start_job(place, build, "go-on")
    until(lambda: not find_stuck(place, build)["stuck"], "all go on")
    members[0].send_signal(signal.SIGSTOP)
    job, stuck = until_named(place, build, kind="silent", rank=0)
    members[0].send_signal(signal.SIGCONT)
    assert job["silent"] == [0], job
    assert "is stopped" in stuck["sentence"], stuck
    until(lambda: not find_stuck(place, build)["stuck"], "it goes on")


@case()
def test_a_killed_rank_is_said_to_be_gone(place, build, folder):
    members = start_job(place, build, "go-on")
    members[CULPRIT].kill()
    job, _ = until_named(place, build, kind="gone", rank=CULPRIT)
    assert job["silent"] == [CULPRIT], job


@cases.case(kind=railnet.Rails)
def test_a_rail_that_is_cut_is_named_with_both_its_ends(place, build, folder):
    start_job(place, build, "go-on", size=2, sides=(0, 1), host=place.host(0), nics="veth0,veth1")
    until(lambda: (job := find_stuck(place, build))["size"] == 2 and not job["stuck"], "both rails are up")
    place.cut(1, True, number=1)
    job, stuck = until_named(place, build, kind="rail", rank=0, peer=1, rail="veth1")
    assert not job["silent"] and re.match(r"rail veth1 of rank 0 to rank 1 \(10\.77\.1\.2:\d+\) is \w+ for [0-9.]+ s",
                                          stuck["sentence"]), stuck
    place.cut(1, False, number=1)
    until(lambda: not find_stuck(place, build)["stuck"], "it is up again")


@case()
def test_stat_says_so_where_there_is_no_job(place, build, folder):
    done = stat(place, build, "--job", code=1)
    assert "no process of a World shows itself in" in done.stderr, done


@case()
def test_another_rank_is_asked_if_the_one_that_is_named_does_not_answer(place, build, folder):
    members = start_job(place, build, "receive", PULLMAN_PROGRESS="calls")
    job, _ = until_named(place, build, members[CULPRIT].pid, kind="silent", rank=CULPRIT)
    assert [rank["rank"] for rank in job["ranks"]] == OTHERS, job


@case()
def test_ranks_that_nobody_is_connected_to_answer_however_often_they_are_asked(place, build, folder):
    members = start_job(place, build, "apart")
    members[0].send_signal(signal.SIGSTOP)
    for _ in range(10):  # more than the questions that one may leave without an answer
        job = find_stuck(place, build, members[1].pid)
        assert job["silent"] == [0] and [rank["rank"] for rank in job["ranks"]] == [1, 2, 3], job
    members[0].send_signal(signal.SIGCONT)


@case()
def test_a_rank_that_makes_calls_and_no_turns_calls_and_waits_for_what_it_has_posted(place, build, folder):
    start_job(place, build, "calls")
    _, stuck = until_named(place, build, kind="cycle", rank=CULPRIT, waiting=[CULPRIT, CULPRIT + 1])
    assert "rank 2 for rank 3's message, rank 3 for rank 2's message" in stuck["sentence"], stuck


@case()
def test_a_rank_that_is_called_back_calls(place, build, folder):
    start_job(place, build, "callbacks")
    _, stuck = until_named(place, build, kind="call", rank=CULPRIT, waiting=OTHERS)
    assert "its program calls" in stuck["sentence"], stuck


@case()
def test_one_question_tells_what_is_stuck_where_nobody_has_looked_before(place, build, folder):
    members = start_job(place, build, "posted", hidden=OTHERS)
    for rank in OTHERS:
        assert members[rank].stdout.readline() == "posted\n"
    job = json.loads(stat(place, build, "--job", "--format", "json", "--patience", 30).stdout)
    assert job["settled"] and [(one["rank"], one["waiting"]) for one in job["stuck"]] == [(CULPRIT, OTHERS)], job


@case()
def test_a_patience_too_short_to_know_is_said_to_be(place, build, folder):
    start_job(place, build, "go-on", size=2)

    def says_so():
        return "whether anything stands still is not known yet" in stat(place, build, "--job", "--patience", 0.9,
                                                                        code=None).stdout
    until(says_so, "an answer, and no second one")


@case()
def test_many_that_do_not_answer_do_not_keep_the_one_that_does_from_being_heard(place, build, folder):
    members = start_job(place, build, "go-on", size=11)
    last = sorted(folder.glob("*.job"))[-1].name
    stopped = [member for member in members if str(member.pid) not in re.findall(r"\d+", last)]
    assert len(stopped) == 10, last
    for member in stopped:
        member.send_signal(signal.SIGSTOP)
    job = json.loads(stat(place, build, "--job", "--format", "json", "--patience", 4).stdout)
    for member in stopped:
        member.send_signal(signal.SIGCONT)
    assert job["size"] == 11 and len(job["silent"]) == 10, job


@case()
def test_a_stopped_process_is_said_to_be_in_spite_of_its_thread(place, build, folder):
    members = start_job(place, build, "receive")
    members[CULPRIT].send_signal(signal.SIGSTOP)
    _, stuck = until_named(place, build, kind="silent", rank=CULPRIT, waiting=OTHERS)
    members[CULPRIT].send_signal(signal.SIGCONT)
    assert "and has a progress thread: it is stopped" in stuck["sentence"], stuck


@case()
def test_of_two_jobs_on_a_host_each_answers_for_itself(place, build, folder):
    one = start_job(place, build, "go-on", size=3)
    other = start_job(place, build, "receive", port=PORT + 10, PULLMAN_PROGRESS="calls")

    def answers_of(member):
        return {rank["process"] for rank in find_stuck(place, build, member.pid)["ranks"]}
    until(lambda: answers_of(one[0]) == {member.pid for member in one}, "all of one job and no other")
    # Both have a rank that does not answer, of which the counters say something: each of its own.
    one[CULPRIT].send_signal(signal.SIGSTOP)
    for members in one, other:
        _, stuck = until_named(place, build, members[0].pid, kind="silent", rank=CULPRIT)
        assert f"process {members[CULPRIT].pid} of this host" in stuck["sentence"], stuck
    assert answers_of(other[0]) == {other[rank].pid for rank in OTHERS}


@case()
def test_the_door_is_for_its_user_only_and_what_a_killed_process_leaves_is_swept(place, build, folder):
    members = start_job(place, build, "go-on", size=1)

    def doors():
        return [file for file in folder.iterdir() if file.suffix == ".job"]
    door, = doors()
    assert door.stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700
    members[0].kill()
    members[0].wait()
    assert doors() == [door], "nobody has removed it"
    start_job(place, build, "go-on", size=1, port=PORT + 10)
    assert len(doors()) == 1 and doors() != [door]


# --- PULLMAN_REPORT

def rows_of(page):
    return {words[0]: words[1:] for words in map(str.split, page.splitlines()) if len(words) == 7}


@case()
def test_processes_of_mpirun_report_their_counters_on_one_page(place, build):
    if shutil.which("mpirun") is None:
        pytest.skip("needs mpirun")
    done = subprocess.run(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4", "-x", "PULLMAN_REPORT", "-x", "PULLMAN_NICS",
         build / "test/kernel/job-member", "0", "end"],
        env={**os.environ, "PULLMAN_REPORT": "1", "PULLMAN_NICS": "lo"}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=60, check=False)
    assert done.returncode == 0 and len(re.findall(r"Pullman \d+\.\d+\.\d+: 4 ranks, \d+\.\d s\n", done.stderr)) == 1, done
    rows = rows_of(done.stderr)
    least, _, _, most, _, total = map(int, rows["messages_sent"])
    assert 3 <= least <= most and 4 * least <= total <= 4 * most, done.stderr
    assert "without" not in done.stderr and not re.search(r" 0 +\d+ +0 +0 +\d+ +0$", done.stderr, re.M), done


def run_alone(place, build, how, report):
    done = subprocess.run(
        place.command(0, build / "test/kernel/job-member", "0", how), capture_output=True, text=True, timeout=60,
        check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "PULLMAN_REPORT": str(report), "PULLMAN_NICS": "lo", "PULLMAN_RANK": "0",
             "PULLMAN_SIZE": "1", "PULLMAN_RENDEZVOUS": f"127.0.0.1:{PORT}"})
    assert done.returncode == 0, done
    return done.stderr


@case()
def test_a_report_that_cannot_be_written_is_shown(place, build, tmp_path):
    said = run_alone(place, build, "end", tmp_path / "nowhere/report.json")
    assert "cannot be written" in said and "1 ranks" in said and "counter" in said, said


@case()
def test_a_process_whose_context_was_closed_says_that_it_is_missing_in_the_report(place, build, tmp_path):
    began = time.monotonic()
    said = run_alone(place, build, "close", "1")
    assert "missing in the report" in said and "counter" not in said, said
    assert time.monotonic() - began < 50, "its patience is a minute"


@case()
def test_a_rank_that_is_killed_is_missing_in_the_report_which_is_a_file_of_json(place, build, tmp_path):
    report = tmp_path / "report.json"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "SLURM", "OMPI"))}

    def start(rank):
        how = "go-on" if rank == CULPRIT else "end"
        return place.start(0, build / "test/kernel/job-member", CULPRIT, how, stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True,
                           env={**inherited, "PULLMAN_NICS": "lo", "PULLMAN_RENDEZVOUS": f"127.0.0.1:{PORT}",
                                "PULLMAN_RANK": str(rank), "PULLMAN_SIZE": "4", "PULLMAN_REPORT": str(report)})
    members = [start(rank) for rank in range(SIZE)]
    assert members[CULPRIT].stdout.readline() == "ready\n"
    members[CULPRIT].kill()
    for rank in OTHERS:
        assert members[rank].wait(timeout=90) == 0
    page = json.loads(report.read_text())
    assert page["size"] == SIZE and page["missing"] == [CULPRIT], page
    assert page["counters"]["messages_sent"]["minimum"] >= 3, page
