"""Several clients at once (`workload.clients`), through the whole program."""

from __future__ import annotations

import json

import nandlab
import pytest

DRIVE = """
seed = 3
[drive]
channels = 2
chips_per_channel = 1
planes_per_die = 2
blocks_per_plane = 64
pages_per_block = 32
op = 0.25
"""
SAME = (
    'requests = 1500, read_fraction = 0.6, trim_fraction = 0.05, size = { "4KiB" = 3, "16KiB" = 1 }, '
    "address = { zipf = 0.9 }, span = 0.7"
)
REQUESTS = {"output.requests": True}


def clients(*entries: str, sets: dict[str, object] | None = None):
    """The result of a run with these clients."""
    return nandlab.run(f"{DRIVE}[workload]\nclients = [{', '.join(entries)}]\n", sets={**REQUESTS, **(sets or {})})


@pytest.mark.parametrize("arrival", ["{ queue_depth = 8 }", "{ iops = 9000, process = 'poisson' }"])
@pytest.mark.parametrize("extra", ["", "warm_up = 300\n", "repeat = 2\nrequests_max = 2500\n"])
def test_one_client_is_the_synthetic_workload(arrival, extra):
    single = nandlab.run(f"{DRIVE}[workload]\nsynthetic = {{ {SAME} }}\narrival = {arrival}\n{extra}", sets=REQUESTS)
    client = nandlab.run(
        f"{DRIVE}[workload]\nclients = [{{ name = 'one', {SAME}, arrival = {arrival} }}]\n{extra}", sets=REQUESTS
    )
    found, expected = json.loads(client.summary_text), json.loads(single.summary_text)
    of_client = found.pop("clients")["one"]
    for summary in (found, expected):
        # The notes name the keys of the workload.
        del summary["spec_hash"], summary["notes"]
    assert found == expected
    assert (of_client["host"], of_client["latency_us"]) == (expected["host"], expected["latency_us"])
    rows = client.table("requests")
    assert rows.drop("client").equals(single.table("requests"))
    assert set(rows["client"]) == {0}


TWO = (
    "{ name = 'a', requests = 800, arrival = { iops = 3000, process = 'poisson' }, outstanding = 2 }",
    "{ name = 'b', requests = 400, read_fraction = 1.0, size = '16KiB', span = { from = 0.5, to = 1.0 } }",
)


def test_results_of_clients_add_up_and_the_same_run_gives_the_same_bytes():
    result = clients(*TWO)
    summary, rows = result.summary, result.table("requests")
    assert list(summary.clients) == ["a", "b"]
    for op in ("read", "write", "trim", "flush"):
        of = [getattr(client.host, op) for client in summary.clients.values()]
        whole = getattr(summary.host, op)
        assert (sum(x.count for x in of), sum(x.bytes for x in of)) == (whole.count, whole.bytes)
    assert sum(client.iops for client in summary.clients.values()) == pytest.approx(summary.iops)
    for number, client in enumerate(summary.clients.values()):
        mine = rows.filter(rows["client"] == number)
        reads = mine.filter(mine["op"] == "read") if mine["op"].dtype != int and "read" in set(mine["op"]) else None
        if reads is not None and len(reads):
            mean = (reads["completed_ns"] - reads["arrival_ns"]).mean() * 1e-3
            assert client.latency_us.read.mean == pytest.approx(mean)
    assert summary["clients.a.latency_us.read.mean"] == summary.clients["a"].latency_us.read.mean
    assert summary.clients["a"].waiting is not None and summary.clients["b"].waiting is None
    assert clients(*TWO).summary_text == result.summary_text


def test_a_client_at_the_end_changes_no_request_of_the_others():
    drawn = ["op", "offset", "length"]
    fewer, more = clients(*TWO).table("requests"), clients(*TWO, "{ name = 'c', requests = 90 }").table("requests")
    for number in (0, 1):
        of = [rows.filter(rows["client"] == number).sort("arrival_ns")[drawn] for rows in (fewer, more)]
        assert sorted(of[0].rows()) == sorted(of[1].rows())


def test_latency_begins_when_due_or_at_submission():
    slow = "requests = 200, read_fraction = 0.0, arrival = { iops = 4000 }, outstanding = 1"
    due = clients(f"{{ name = 'a', {slow} }}").summary
    submitted = clients(f"{{ name = 'a', {slow}, latency_from = 'submission' }}").summary
    assert due.duration_s == submitted.duration_s
    one, other = (s.clients["a"] for s in (due, submitted))
    assert one.waiting == other.waiting and one.waiting.requests == 199
    assert one.latency_us.write.mean == pytest.approx(other.latency_us.write.mean + one.waiting.mean_us)


def test_the_controller_takes_the_commands_of_clients_in_turns():
    """Reads of unmapped pages take only the firmware's 100 us; one client has 32 requests outstanding, the other one.

    The other client's next command waits for all 32 commands before it, or with turns for the command at work and for a
    turn of the first client.
    """
    busy = "{ name = 'busy', requests = 3200, read_fraction = 1.0, arrival = { queue_depth = 32 } }"
    single = "{ name = 'single', requests = 90, read_fraction = 1.0, arrival = { queue_depth = 1 } }"
    p50 = {}
    for arbitration in ("arrival", "round-robin"):
        controller = {"read": "100us", "write": "100us", "arbitration": arbitration}
        summary = clients(busy, single, sets={"host.controller": controller}).summary
        p50[arbitration] = summary.clients["single"].latency_us.read.p50
    assert p50["arrival"] == pytest.approx(3300, rel=2e-3)
    assert p50["round-robin"] == pytest.approx(300, rel=2e-3)


def test_flushes_follow_writes():
    summary = clients("{ name = 'a', requests = 100, read_fraction = 0.0, flush_every = 8 }").summary
    assert (summary.clients["a"].host.write.count, summary.clients["a"].host.flush.count) == (100, 12)


def test_what_reads_the_workload_before_the_run():
    timed = "{ name = 'a', arrival = { iops = 1000 }, duration = '100ms' }"
    assert clients(timed).summary.requests == 100
    with pytest.raises(nandlab.TraceError, match=r"workload.clients\[0\].duration: .*map_reads = true needs it"):
        clients(timed, sets={"precondition.map_reads": True})
    mapped = clients(*TWO, sets={"precondition.map_reads": True}).summary
    assert mapped.counters.unmapped_reads == 0


def test_the_screen_and_the_report_show_the_clients(tmp_path, command):
    spec = tmp_path / "two.toml"
    spec.write_text(f"{DRIVE}[workload]\nclients = [{', '.join(TWO)}]\n")
    done = command("run", spec, "--out", tmp_path / "two")
    assert done.returncode == 0, done.stderr
    for row in ("a read", "a write", "a waits", "b read"):
        assert row in done.stdout
    assert command("report", tmp_path / "two").returncode == 0
    page = (tmp_path / "two" / "report.html").read_text()
    assert "Clients" in page and "a waits" in page
