"""Power tests: which promise a cut broke, and whose fault it was.

Recording needs root, /dev/fuse and loop devices, since a file system is mounted; such tests are skipped elsewhere.
`make soak` makes the tests with many cuts.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import nandlab
import pytest
from nandlab import _core, live
from nandlab.power_test import checks, forker, instants, report, test, timeline
from nandlab.power_test.instants import Moments, choose
from nandlab.reporting import content, render

pytest_plugins = ["nandlab.power_test.fixture"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="drives are served on Linux only")

HERE = Path(__file__).parent
STORE = HERE / "power_store.py"
#: Whether the tests with many cuts run.
SOAK = os.environ.get("NANDLAB_POWER_TESTS") == "all"
soak = pytest.mark.skipif(not SOAK, reason="in make soak")

#: A drive without RAM that could lose data: 100 MiB of SLC.
SPEC = """\
seed = 1
[drive]
channels = 2
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 2
pages_per_block = 128
page_size = "4KiB"
cell = "slc"
capacity = "100MiB"
endurance = 1000000
[timing]
read = "50us"
program = "300us"
erase = "1ms"
"""
#: A write cache without a capacitor.
CACHE = ["cache.size=1MiB", "cache.dirty_budget=1.0"]
#: A TLC drive whose write buffer a capacitor protects.
TLC = [
    "drive.cell=tlc",
    "drive.program_order=one-shot",
    "drive.pages_per_block=96",
    "drive.op=0.6",
    "drive.page_size=16KiB",
    "ftl.mapping_unit=4KiB",
    "ftl.buffer=192KiB",
    "cache.flush_to=cache",
    "capacitor.capacitance=10mF",
]

SQLITE = """\
import os, sqlite3, sys
journal, synchronous, number = sys.argv[1:4]
base = sqlite3.connect("t.db", isolation_level=None)
base.execute(f"pragma journal_mode={journal}")
base.execute(f"pragma synchronous={synchronous}")
base.execute("create table if not exists t(a integer primary key, b text)")
with open(os.environ["NANDLAB_ACK"], "w", buffering=1) as ack:
    for row in range(int(number)):
        base.execute("insert into t values(?, ?)", (row, "text" * (row % 50)))
        ack.write(f"{row}\\n")
"""
SQLITE_CHECK = """\
import os, sqlite3, sys
base = sqlite3.connect("t.db")
verdict = base.execute("pragma integrity_check").fetchone()[0]
if verdict != "ok":
    sys.exit(f"damaged: {verdict}")
rows = {row for (row,) in base.execute("select a from t")}
missing = [line for line in open(os.environ["NANDLAB_ACKED"]).read().split() if int(line) not in rows]
if missing and "--any" not in sys.argv:
    sys.exit(f"lost transactions {missing[:5]}")
"""
#: The table, before the workload.
SQLITE_SETUP = "import sqlite3; sqlite3.connect('t.db').execute('create table t(a integer primary key, b text)')"


def can_mount():
    programs = ["nbdfuse", "mkfs.ext4", "e2fsck", "debugfs"]
    places = ["/dev/fuse", "/dev/loop-control"]
    return os.geteuid() == 0 and all(map(shutil.which, programs)) and all(Path(place).exists() for place in places)


needs_root = pytest.mark.skipif(not can_mount(), reason="needs root, nbdfuse, /dev/fuse and loop devices")


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "drive.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def sqlite(tmp_path):
    """Set-up, workload and check of SQLite for `powertest`."""
    (tmp_path / "insert.py").write_text(SQLITE)
    (tmp_path / "check.py").write_text(SQLITE_CHECK)

    def commands(journal, synchronous, number=30, *, any_rows=False):
        return {
            "setup": f'{sys.executable} -c "{SQLITE_SETUP}"',
            "workload": f"{sys.executable} {tmp_path / 'insert.py'} {journal} {synchronous} {number}",
            "check": f"{sys.executable} {tmp_path / 'check.py'}" + (" --any" if any_rows else ""),
        }

    return commands


def store(number, *bugs):
    """Workload and check of the store."""
    return {
        "workload": f"{sys.executable} {STORE} put {number} {' '.join(bugs)}",
        "check": f"{sys.executable} {STORE} check",
    }


@needs_root
def test_sqlite_survives_and_the_recording_repeats_the_test(spec, tmp_path, sqlite, powertest):
    commands = sqlite("wal", "full", 20)
    result = powertest(spec, cuts=20, **commands)
    assert len(result.cuts) == 20 and result.passed and result.smallest is None
    assert any(cut.acked for cut in result.cuts)
    # The same recording, the same cuts.
    recording = result.path / test.RECORDING
    again = nandlab.powertest(
        spec, cuts=20, check=commands["check"], recording=recording, out=tmp_path / "again", jobs=1
    )
    of = lambda one: [(cut.at_ns, cut.acked, cut.lost, cut.passed) for cut in one.cuts]  # noqa: E731
    assert of(again) == of(result)
    other = nandlab.powertest(spec, cuts=20, check=commands["check"], recording=recording, out=tmp_path / "b", seed=2)
    assert of(other) != of(result)
    # Power fails again in recovery, which begins anew and loses no more.
    twice = nandlab.powertest(
        spec, cuts=20, check=commands["check"], recording=recording, out=tmp_path / "c", second_cut=True
    )
    assert of(twice) == of(result)
    found = ElementTree.parse(result.path / test.JUNIT).getroot()
    assert (found.get("tests"), found.get("failures")) == ("20", "0")
    place, _ = test.repeat(result.path, 7)
    acked = (place / "acked.txt").read_text().split()
    assert len(acked) == result.cuts[7].acked
    image = (place / "image").read_bytes()
    assert len(image) >= 100 << 20
    # The same bytes each time.
    assert (test.repeat(result.path, 7)[0] / "image").read_bytes() == image
    assert '<figure class="timeline">' in (place / test.CUT_PAGE).read_text()


@needs_root
def test_a_store_that_forgets_fsync_is_blamed_above_the_drive(spec, tmp_path):
    result = nandlab.powertest(
        spec,
        **store(15, "--no-fsync-file"),
        cuts=12,
        sets=CACHE,
        mount_options="noauto_da_alloc",
        out=tmp_path / "test",
    )
    assert result.broken and set(result.verdicts()) == {"program or file system"}
    assert result.smallest is not None
    found = json.loads((result.path / test.RESULT).read_text())
    assert found["broken"] == len(result.broken)
    page = (result.path / test.PAGE).read_text()
    assert "program or file system" in page and "Requests around the cut" in page
    failures = ElementTree.parse(result.path / test.JUNIT).getroot().findall("testcase/failure")
    assert len(failures) == len(result.broken) and "torn" in failures[0].text


@needs_root
def test_a_mount_option_that_sends_no_flush_is_blamed(spec, tmp_path):
    commands = store(12)
    result = nandlab.powertest(
        spec, **commands, cuts=10, sets=CACHE, mount_options="barrier=0", out=tmp_path / "test", budget_s=3600
    )
    assert "file system" in result.verdicts()
    blamed = next(cut for cut in result.broken if cut.verdict == "file system")
    assert blamed.evidence["no_flush"] == "barrier=0" or blamed.evidence["fsck"]
    assert (len(result.cuts), result.left_out) == (10, 0)


@needs_root
def test_the_command(spec, tmp_path):
    def command(*options, status):
        words = ["powertest", spec, "--check", f"{sys.executable} {STORE} check", "--out", tmp_path / "out", *options]
        done = subprocess.run(
            [sys.executable, "-m", "nandlab", *map(str, words)], capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    workload = ["--workload", f"{sys.executable} {STORE} put 6"]
    shown = command(*workload, "--cuts", "4", "--junit", tmp_path / "j.xml", status=0)
    assert "no cut broke the check" in shown and "slc, no capacitor" in shown
    assert ElementTree.parse(tmp_path / "j.xml").getroot().get("tests") == "4"
    assert "the command ended with status 7" in command("--workload", "echo no; exit 7", status=2)
    assert "at the beginning" in command(*workload, "--set", "seed=1", "--check", "false", status=2)
    assert "no folder" in command(*workload, "--junit", tmp_path / "none" / "j.xml", status=2)
    recording = ["--recording", tmp_path / "out" / test.RECORDING]
    assert "recorded on another drive: drive of" in command(*recording, "--set", "drive.cell=mlc", status=2)
    assert "--fs ext4" in command(*recording, "--fs", "none", status=2)
    assert "no cut fits" in command(*recording, "--budget", "1ms", status=2)
    # A check that fails after the beginning.
    failing = '[ "$(grep -c . "$NANDLAB_ACKED")" != 3 ]'
    shown = command(*recording, "--cuts", "30", "--check", failing, status=4)
    assert "broken" in shown and "earliest" in shown
    shown = command("--repeat", "29", "--check", "echo seen; exit 3", status=4)
    assert "cut-29: acked.txt" in shown and "the check fails: 3" in shown and "| seen" in shown
    assert "not from 0 to 29" in command("--repeat", "30", status=2)
    assert "no result" in command("--repeat", "0", "--out", tmp_path / "none", status=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fs": "ntfs"}, "none of ext4"),
        ({"cuts": 0}, "not from 1"),
        ({}, "--workload is missing"),
        ({"workload": "true", "jobs": 0}, "not at least 1"),
        ({"recording": "nothing.rec"}, "nothing.rec"),
        ({"recording": "nothing.rec", "workload": "true"}, "the recording has what it did"),
    ],
)
def test_arguments_that_are_refused(spec, tmp_path, options, said):
    with pytest.raises(nandlab.NandlabError, match=said):
        nandlab.powertest(spec, check="true", out=tmp_path / "out", **options)


def moments(**changes):
    of = {
        "begin": 1_000,
        "end": 900_000,
        "synced": 1_000_000,
        "acknowledged": [(1_000, "a"), (2_000, "b"), (500_000, "c")],
        "requests": [
            (1_500, "write", 4096, 8192, False),
            (3_000, "flush", 0, 0, False),
            (3_000, "trim", 0, 4096, False),
        ],
        "reached": [(2_000, 2_900), (3_500, None), (3_000, None)],
        "programs": [(1_600, 2_900), (400_000, 700_000)],
        "flushes": [3_500],
        "off": [(10_000, 20_000)],
    }
    return Moments(**(of | changes))


def test_instants_are_everywhere_around_flushes_and_within_programs():
    of = moments()
    chosen = choose(of, 600, 1)
    assert chosen == sorted(chosen) == choose(of, 600, 1) != choose(of, 600, 2)
    assert all(of.begin <= at <= of.synced for at in chosen)
    assert not any(10_000 <= at <= 20_000 for at in chosen)
    # A third of them each, and those at any time come on top.
    assert sum(abs(at - 3_500) <= 1 for at in chosen) >= 100
    within = sum(any(first <= at <= last for first, last in of.programs) for at in chosen)
    assert within >= 200
    assert len(choose(moments(flushes=[], programs=[]), 50, 1)) == 50
    assert of.lines_until(2_000) == ["a", "b"] and of.lines_until(999) == []
    assert of.events(1_500, 3_500) == [1_600, 2_900, 3_000]


def test_the_request_of_a_lost_unit_is_the_newest_one_with_the_promise():
    of = moments()
    assert of.request_of(8192, 4096, 10_000, "covered") == 0
    # The flush had not ended.
    assert of.request_of(8192, 4096, 3_400, "covered") is None
    assert of.request_of(8192, 4096, 3_400, "acknowledged") == 0
    assert of.request_of(8192, 4096, 1_900, "acknowledged") is None
    assert of.request_of(8192, 4096, 1_900, "in_flight") == 0
    # The TRIM was acknowledged with the flush, so it may be lost.
    assert of.request_of(0, 4096, 10_000, "acknowledged") == 2
    assert of.request_of(12288, 4096, 10_000, "acknowledged") is None
    with_fua = moments(requests=[(10, "write", 0, 4096, True)], reached=[(20, 20)])
    assert with_fua.request_of(0, 4096, 30, "covered") == 0


def many(number, step=1000):
    """A session with a write every `step` ns, acknowledged after half of it and in flash at the next one."""
    of = [(n * step, "flush" if n % 5 == 4 else "write", n * 4096, 4096, False) for n in range(number)]
    reached = [(when + step // 2, when + step if op == "write" else None) for when, op, *_ in of]
    return moments(requests=of, reached=reached, synced=number * step)


def unit(number, promise="acknowledged"):
    return {"offset": number * 4096, "promise": promise, "trim": False}


def test_a_time_line_has_the_requests_around_the_cut():
    of, at = many(100), 50_200
    shown = timeline.around(of, at, 4096, [unit(48), unit(3, "covered")], [unit(47)])
    # The last ones, the next ones, and a lost one from long before.
    assert shown.numbers == [3, *range(31, 54)]
    assert (shown.lost, shown.also_lost) == ({3, 48}, {47})
    drawn = timeline.timeline(of, shown, "title")
    lanes = {lane.name: lane for lane in drawn.lanes}
    assert drawn.cut == pytest.approx(88, abs=0.5)
    assert lanes["3 write"].is_earlier and lanes["3 write"].loss == "lost"
    assert lanes["31 write"].begin == 0 and not lanes["31 write"].is_earlier
    assert (lanes["48 write"].loss, lanes["47 write"].loss) == ("lost", "also lost")
    assert lanes["48 write"].begin < lanes["48 write"].acknowledged < lanes["48 write"].in_flash < drawn.cut
    # The cut is between submission and acknowledgement.
    last = lanes["50 write"]
    assert last.begin < drawn.cut < last.acknowledged
    # Those of the flushes 34, 39 and 44: the flush 49 has ended, too.
    assert len(drawn.flushes) == 4 and "lost" in lanes["48 write"].text
    assert drawn.ticks[-1][:2] == (drawn.cut, "cut") and len(drawn.ticks) <= 9
    shown = timeline.around(of, at, 4096, [unit(n) for n in range(30) if n % 5 != 4])
    assert shown.numbers[0] == 20 and shown.left_out == 24 - 8
    assert "16 lost requests from before" in timeline.timeline(of, shown, "title").caption
    # Before a pause nothing is shown but the last four.
    pause = many(10)
    late = [(when + (0 if number < 4 else 900_000), *rest) for number, (when, *rest) in enumerate(pause.requests)]
    shown = timeline.around(moments(requests=late, reached=[(None, None)] * 10), 910_000, 4096, [])
    assert shown.numbers == list(range(4, 10))
    assert timeline.timeline(moments(requests=[], reached=[]), timeline.Around(5, [], set(), set()), "none") is None


def test_the_page_draws_the_time_line():
    of = many(40)
    shown = timeline.around(of, 20_200, 4096, [unit(18)], [unit(17)])
    parts = report.requests_around(of, shown)
    section = content.sections_of([("Requests", parts)])
    page = content.Page("powertest", "t", "lead", (), (), section, "", "1")
    html = render.html_of(page)
    drawing = html[html.index('<figure class="timeline">') : html.index("</figure>")]
    root = ElementTree.fromstring(f"{drawing}</figure>")
    marks = [one.get("class").split()[-1] for one in root.iter("svg") if (one.get("class") or "").startswith("mark")]
    # One in the legend, and one at the cut.
    assert marks.count("lost") == marks.count("also-lost") == 2
    (image,) = [one for one in root.iter("svg") if one.get("role") == "img"]
    assert "20 requests before the cut" in image.get("aria-label") and "2 lost" in image.get("aria-label")
    titles = [one.text for one in root.iter("title")]
    # The last request is later than the time that is drawn.
    assert len(titles) == len(shown.numbers) - 1
    assert [title.split(":")[0] for title in titles if title.endswith("lost")] == ["request 17", "request 18"]
    assert html.count("<b>lost</b>") == html.count("<b>also lost</b>") == 1


class Fake(forker.Images):
    """Images whose check fails when a set of writes is lost."""

    def __init__(self, lost, needed, fsck="", breaks_anyway=False):
        self.cut = {"lost": lost}
        self.how = checks.How("ext4", "", 1, "")
        self.needed, self.fsck, self.breaks_anyway, self.checked = set(needed), fsck, breaks_anyway, []

    def name(self, units, put_back):
        assert put_back == list(range(len(self.cut["lost"])))

    def check(self, put_back, *, with_fsck=False):
        self.checked.append(put_back)
        missing = set(range(len(self.cut["lost"]))) - set(put_back)
        passed = not self.breaks_anyway and not self.needed <= missing
        dirty = self.fsck(put_back) if callable(self.fsck) else self.fsck
        return checks.Outcome(passed, 0 if passed else 1, "", dirty=dirty if with_fsck else "")


def lost(*promises):
    return [
        {"lpn": n, "offset": n, "promise": promise, "sequence": n, "trim": False, "destroyed": False}
        for n, promise in enumerate(promises)
    ]


def blame(images, **facts):
    found = forker._blame(images, checks.Outcome(False, 1, ""), facts)
    return found["verdict"]


def test_the_four_questions():
    covered, acknowledged = lost("covered", "acknowledged", "in_flight"), lost("acknowledged", "acknowledged")
    assert blame(Fake(covered, [0])) == "drive"
    # A write that no flush covers may be lost, but not destroyed.
    assert blame(Fake(acknowledged, [0])) == "program or file system"
    acknowledged[0]["destroyed"] = True
    assert blame(Fake(acknowledged, [0])) == "drive"
    # What is lost beside it without the drive's fault is not blamed on the drive.
    assert blame(Fake(acknowledged, [1])) == "program or file system"
    # A write that was outstanding is no promise, and a TRIM that was not flushed may be undone.
    for change in ({"promise": "in_flight"}, {"trim": True}):
        assert blame(Fake([acknowledged[0] | change], [0])) == "program or file system"
    undone = [covered[0] | {"trim": True}]
    assert blame(Fake(undone, [0])) == "drive"
    assert blame(Fake(covered, [1])) == "program or file system"
    assert blame(Fake(covered, [1]), mount_options="barrier=0") == "file system"
    assert blame(Fake(covered, [1]), fsyncs=0, flushes=0) == "program"
    assert blame(Fake(covered, [1]), fsyncs=9, flushes=0) == "file system"
    assert blame(Fake(covered, [1]), fsyncs=9, flushes=9) == "program or file system"
    assert blame(Fake(covered, [1], fsck="bad inode")) == "file system"
    # Damage that is gone with what the drive has lost put back is the drive's.
    assert blame(Fake(covered, [1], fsck=lambda put_back: "" if 0 in put_back else "bad inode")) != "file system"
    assert blame(Fake(covered, [2], breaks_anyway=True)) == "program or file system"
    assert blame(Fake([], [5])) == "check"


@pytest.mark.parametrize("needed", [[3], [0, 19], [2, 3, 11], list(range(20))])
def test_the_smallest_set_of_lost_writes_is_found(needed):
    images = Fake(lost(*["acknowledged"] * 20), needed)
    found = forker._minimise(images, 1000)
    assert [unit["lpn"] for unit in found["lost"]] == needed
    assert found["tries"] == len(images.checked) and not found["bounded"]
    assert forker._minimise(Fake(lost("covered"), [], breaks_anyway=True), 9)["needs_no_loss"]
    assert forker._minimise(Fake(lost(*["covered"] * 20), [1, 7, 12]), 3)["bounded"]
    assert forker._minimise(Fake(lost(*["covered"] * 20), [1, 7, 12]), 99, deadline_s=0)["bounded"]


def test_the_evidence_in_words():
    cut = test.Cut(
        3, 5, False, 1, "text\x00", "", 2, {"covered": 1, "acknowledged": 2, "in_flight": 0}, 1, "drive", {}, 0.1
    )
    cut.evidence = {"with_covered": True, "put_back": 1, "fsck": ""}
    assert "1 write put back" in report.evidence_text(cut) and "1 unit cannot be read" in report.evidence_text(cut)
    cut.evidence = {
        "with_acknowledged": False,
        "no_flush": "barrier=0",
        "fsyncs": 4,
        "flushes": 1,
        "fsck": "bad\nworse",
    }
    cut.verdict = "file system"
    text = report.evidence_text(cut)
    for words in ("all 3 acknowledged writes", "still fails", "bad", "barrier=0", "4 times", "1 flush"):
        assert words in text
    result = test.PowerTest(Path("x"), [cut], {}, None, 1.0, 0, "slc", False, 1, 0, 1.0, "true")
    assert "text?" in report.junit(result).decode()


@pytest.mark.skipif(shutil.which("mkfs.ext4") is None or shutil.which("debugfs") is None, reason="needs e2fsprogs")
def test_a_damaged_image_of_ext4_is_dirty(tmp_path):
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    (tmp_path / "a").write_text("hello")
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["debugfs", "-w", "-R", f"write {tmp_path / 'a'} a", image], check=True, capture_output=True)
    how = checks.How("ext4", "grep -q hello a", 10, str(tmp_path))
    acked = tmp_path / "acked"
    acked.write_text("")

    def outcome():
        return checks.check(checks.Image(image), how, acked, tmp_path, with_fsck=True)

    assert outcome().passed and outcome().dirty == ""
    # Counts of free blocks, as the replay of a journal leaves them, are no damage.
    subprocess.run(
        ["debugfs", "-w", "-R", "set_super_value free_blocks_count 7", image], check=True, capture_output=True
    )
    assert outcome().passed and outcome().dirty == ""
    subprocess.run(["debugfs", "-w", "-R", "set_inode_field a links_count 9", image], check=True, capture_output=True)
    assert "inode" in outcome().dirty.lower()
    slow = checks.check(checks.Image(image), checks.How("ext4", "sleep 9", 0.2, "/"), acked, tmp_path)
    assert not slow.passed and "did not end" in slow.reason
    # What the check has started in the background ends, too.
    how = checks.How("none", f"sleep 600 & echo $! > {tmp_path / 'pid'}; echo begun; wait", 4.0, "/")
    slow = checks.check(checks.Image(image), how, acked, tmp_path)
    assert not slow.passed and slow.output == "begun\n"
    # A killed process ends when it is scheduled next, and nobody waits for one in the background.
    pid, end = int((tmp_path / "pid").read_text()), time.monotonic() + 60
    while is_running(pid) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_running(pid)


def is_running(pid):
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


READ = """\
import os, sys
sys.path.insert(0, %r)
from nbd_client import Client
client = Client(os.environ["NANDLAB_URI"].split("socket=")[1])
for line in open(os.environ["NANDLAB_LOST"]):
    offset, length = map(int, line.split())
    for at in (offset, offset + length - 1):
        try:
            client.read(at, 1)
            sys.exit(f"byte {at} is read")
        except OSError as error:
            assert error.errno == 5, error
    assert client.read(offset - 8, 8) == client.read(offset + length, 8) == b"neighbor"
    assert open(os.environ["NANDLAB_IMAGE"], "rb").read()[offset : offset + length] == bytes(length)
    if "file" in sys.argv:
        file = os.open(os.environ["NANDLAB_FILE"], os.O_RDONLY)
        try:
            os.pread(file, 1, offset)
            sys.exit("the file is read")
        except OSError as error:
            assert error.errno == 5, error
        assert os.pread(file, 8, offset + length) == b"neighbor"
"""


def test_what_the_drive_cannot_read_is_an_error_of_the_served_image(tmp_path):
    (tmp_path / "read.py").write_text(READ % str(HERE))
    (tmp_path / "acked").write_text("")
    file = "file" if can_mount() else ""
    how = checks.How("none", f"{sys.executable} {tmp_path / 'read.py'} {file}", 60, str(tmp_path))

    def outcome(unreadable):
        path = tmp_path / "image"
        data = bytearray(b"neighbor" * (10 * 4096 // 8))
        for offset in unreadable:
            data[offset : offset + 4096] = bytes(4096)
        path.write_bytes(data)
        found = checks.check(checks.Image(path, 4096, unreadable), how, tmp_path / "acked", tmp_path)
        assert found.passed, found.output
        return (tmp_path / "image.lost").read_text()

    assert outcome([4096, 5 * 4096]) == "4096 4096\n20480 4096\n"
    assert outcome([]) == ""


def ext4_with_a_lost_block(folder):
    """An image of ext4 whose file `a` has 20 blocks of one byte each; the third and the last cannot be read."""
    path = folder / "image"
    with path.open("wb") as file:
        file.truncate(16 << 20)
    (folder / "a").write_bytes(b"a" * 20 * 4096)
    subprocess.run(["mkfs.ext4", "-q", "-b", "4096", path], check=True)

    def debugfs(*words):
        done = subprocess.run(["debugfs", *words, path], check=True, capture_output=True, text=True)
        return done.stdout.split()

    debugfs("-w", "-R", f"write {folder / 'a'} a")
    return checks.Image(path, 4096, [4096 * int(debugfs("-R", f"bmap a {block}")[-1]) for block in (2, 19)])


@needs_root
def test_a_file_system_meets_the_errors_of_the_drive(tmp_path):
    (tmp_path / "acked").write_text("")
    image = ext4_with_a_lost_block(tmp_path)
    check = (
        'for n in 0 1 3 18; do [ "$(dd if=a bs=4096 skip=$n count=1 | tr -d a | wc -c)" = 0 ] || exit 8; done;'
        "LC_ALL=C cat a > /dev/null && exit 9; LC_ALL=C dd if=a bs=4096 skip=19 count=1; echo kept > b; sync b; exit 0"
    )
    found = checks.check(image, checks.How("ext4", check, 60, "/"), tmp_path / "acked", tmp_path)
    assert found.passed and found.output.count("Input/output error") == 2, found
    # What the check writes is on the image, and a range that was put back can be read.
    how = checks.How("ext4", "cat a b > /dev/null", 60, "/")
    assert checks.check(checks.Image(image.path), how, tmp_path / "acked", tmp_path).passed
    # A file system without its superblock does not mount, and none is made in its place.
    broken = checks.check(checks.Image(image.path, 4096, [0]), how, tmp_path / "acked", tmp_path)
    assert not broken.passed and broken.reason == "the file system does not mount"


def test_without_root_the_files_have_zeros_for_what_is_lost(tmp_path, monkeypatch):
    if shutil.which("mkfs.ext4") is None or shutil.which("debugfs") is None:
        pytest.skip("needs e2fsprogs")
    monkeypatch.setattr(checks, "can_mount", lambda: False)
    (tmp_path / "acked").write_text("")
    image = ext4_with_a_lost_block(tmp_path)
    with image.path.open("r+b") as file:
        for offset in image.unreadable:
            file.seek(offset)
            file.write(bytes(4096))
    how = checks.How("ext4", '[ "$(tr -d a < a | wc -c)" = 8192 ] && [ -n "$NANDLAB_URI" ]', 60, "/")
    assert checks.check(image, how, tmp_path / "acked", tmp_path).passed
    if can_mount():
        # The replay of the journal meets the errors.
        found = checks.check(checks.Image(image.path, 4096, [0]), how, tmp_path / "acked", tmp_path)
        assert not found.passed and found.reason == "the journal is not replayed"
    # Without nbdfuse it does not.
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(checks, "_recover_ext4", lambda file: "" if file == image.path else "served")
    assert checks._recover_served(live.Drive(tmp_path / "none.sock"), image.path) == ""


def test_an_ordinary_user_needs_no_file_system(spec, tmp_path):
    """Without a file system the workload uses the drive itself; here over its socket."""
    (tmp_path / "w.py").write_text(
        "import os, sys, urllib.parse\n"
        f"sys.path.insert(0, {str(HERE)!r})\n"
        "from nbd_client import Client\n"
        "client = Client(os.environ['NANDLAB_URI'].split('socket=')[1])\n"
        "with open(os.environ['NANDLAB_ACK'], 'w', buffering=1) as ack:\n"
        "    for n in range(20):\n"
        "        client.write(n * 4096, bytes([n + 1]) * 4096)\n"
        "        if '--flush' in sys.argv:\n"
        "            client.flush()\n"
        "        ack.write(f'{n}\\n')\n"
    )
    (tmp_path / "c.py").write_text(
        "import os, sys\n"
        "image = open(os.environ['NANDLAB_IMAGE'], 'rb').read(20 * 4096)\n"
        "for n in map(int, open(os.environ['NANDLAB_ACKED'])):\n"
        "    if image[n * 4096 : (n + 1) * 4096] != bytes([n + 1]) * 4096:\n"
        "        sys.exit(f'unit {n} is lost')\n"
    )
    arguments = {"fs": "none", "check": f"{sys.executable} {tmp_path / 'c.py'}", "cuts": 30, "sets": CACHE}
    workload = f"{sys.executable} {tmp_path / 'w.py'}"
    flushed = nandlab.powertest(spec, workload=f"{workload} --flush", out=tmp_path / "a", **arguments)
    assert flushed.passed
    forgot = nandlab.powertest(spec, workload=workload, out=tmp_path / "b", **arguments)
    assert set(forgot.verdicts()) == {"program"}
    # One write that is lost is enough, and it is named.
    assert len(forgot.smallest["lost"]) == 1
    unit = forgot.smallest["lost"][0]
    written = _core.recording_moments(str(forgot.path / test.RECORDING), nandlab.load(SPEC))["requests"]
    assert written[unit["request"]][1:4] == ("write", unit["offset"], 4096)


POSTGRES = HERE / "power_postgres.py"
needs_postgres = pytest.mark.skipif(
    shutil.which("pg_ctlcluster") is None or shutil.which("setpriv") is None, reason="not on this machine: postgresql"
)


def postgres(rows, *settings):
    """Set-up, workload and check of PostgreSQL."""
    command = f"{sys.executable} {POSTGRES}"
    return {
        "setup": f"{command} setup",
        "workload": f"{command} insert {rows} {' '.join(settings)}",
        "check": f"{command} check",
        "sets": [*CACHE, "drive.capacity=300MiB"],
    }


@needs_root
@needs_postgres
def test_postgresql_survives(spec, powertest):
    result = powertest(spec, cuts=2, **postgres(12))
    assert any(cut.acked for cut in result.cuts)


@soak
@needs_root
@needs_postgres
@pytest.mark.parametrize(("settings", "breaks"), [([], False), (["fsync=off"], True), (["full_page_writes=off"], None)])
def test_settings_of_postgresql(spec, tmp_path, settings, breaks):
    """Without fsync transactions are lost; without full-page writes a page may be torn, which needs luck to be seen."""
    result = nandlab.powertest(spec, cuts=30, out=tmp_path / "test", **postgres(40, *settings))
    print(f"postgresql {settings}: {len(result.broken)} of 30 broken, {result.verdicts()}")
    assert breaks is None or bool(result.broken) == breaks
    assert "drive" not in result.verdicts()


@soak
@needs_root
@pytest.mark.parametrize(
    ("journal", "synchronous", "sets", "any_rows"),
    [
        ("delete", "full", [], True),
        ("wal", "full", [], False),
        ("delete", "extra", TLC, False),
        ("wal", "full", TLC, False),
    ],
)
def test_a_thousand_cuts_of_sqlite(spec, tmp_path, sqlite, powertest, journal, synchronous, sets, any_rows):
    """With FULL and a rollback journal the last transaction may be lost, as SQLite documents; with EXTRA it is kept."""
    result = powertest(spec, cuts=1000, sets=sets, **sqlite(journal, synchronous, 60, any_rows=any_rows))
    assert len(result.cuts) == 1000
    print(f"{journal} {synchronous} {result.drive}: {result.wall_s:.0f} s")


@soak
@needs_root
def test_flushed_pages_lost_by_planar_mlc_are_blamed_on_the_drive(spec, tmp_path, sqlite):
    result = nandlab.powertest(
        spec, cuts=200, sets=["drive.cell=mlc"], out=tmp_path / "test", **sqlite("delete", "extra", 60)
    )
    assert set(result.verdicts()) == {"drive"}


@soak
@needs_root
def test_sqlite_that_never_syncs_is_found_by_its_acknowledged_lines(spec, tmp_path, sqlite):
    result = nandlab.powertest(spec, cuts=100, out=tmp_path / "test", **sqlite("delete", "off", 60))
    assert result.broken and "drive" not in result.verdicts()
    any_rows = sqlite("delete", "off", 60, any_rows=True)
    recording = result.path / test.RECORDING
    hidden = nandlab.powertest(spec, cuts=100, out=tmp_path / "b", check=any_rows["check"], recording=recording)
    # The integrity check alone finds at most damage, and not the lost transactions.
    assert len(hidden.broken) < len(result.broken)


@soak
@needs_root
@pytest.mark.parametrize("bug", ["--no-fsync-file", "--no-fsync-dir"])
@pytest.mark.parametrize("fs", ["ext4", "xfs"])
def test_planted_bugs_of_the_store(spec, tmp_path, bug, fs):
    result = nandlab.powertest(
        spec,
        **store(40, bug),
        cuts=60,
        fs=fs,
        sets=[*CACHE, "drive.capacity=350MiB"],
        mount_options="noauto_da_alloc" if fs == "ext4" else "",
        out=tmp_path / "test",
    )
    assert result.broken and "drive" not in result.verdicts(), result.verdicts()


@soak
@needs_root
@pytest.mark.parametrize("fs", ["ext4", "xfs", "btrfs"])
def test_the_store_without_bugs_survives(spec, tmp_path, powertest, fs):
    powertest(spec, **store(40), cuts=60, fs=fs, sets=[*CACHE, "drive.capacity=350MiB"])


def test_marks_are_those_of_the_session():
    found = {
        "marks": [(5, instants.BEGIN), (9, instants.END), (11, instants.SYNCED)],
        "acknowledged": [],
        "cuts": [6, 7],
        "requests": [],
        "reached": [],
        "programs": [(1, 2), (4, 8)],
        "flushes": [3, 8],
        "end": 12,
    }
    of = Moments.of(found)
    assert (of.begin, of.end, of.synced, of.off) == (5, 9, 11, [(6, 7)])
    assert of.programs == [(4, 8)] and of.flushes == [8]
    whole = Moments.of(found | {"marks": []})
    assert (whole.begin, whole.end, whole.synced) == (0, 12, 12)
