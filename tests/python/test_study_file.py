"""Study files: every error is reported with its line, and files that are read have limits."""

import os
import time
import tomllib

import pytest
from study_lab import BASE, STUDY, command


def test_a_path_of_a_study_may_contain_an_environment_variable(tmp_path, monkeypatch):
    import nandlab

    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "t.csv").write_text("0,a,0,Write,0,4096,0\n128166372003061629,a,0,Write,0,4096,0\n")
    (tmp_path / "base.toml").write_text(BASE.split("[workload]")[0])
    (tmp_path / "s.toml").write_text(
        '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n[workloads.t]\ntrace = "$NANDLAB_TRACES/t.csv"\n'
    )
    monkeypatch.delenv("NANDLAB_TRACES", raising=False)
    with pytest.raises(nandlab.NandlabError, match="the environment variable NANDLAB_TRACES is not set"):
        nandlab.Study.load(tmp_path / "s.toml")
    # A relative folder starts at the study's directory.
    for folder in (str(tmp_path / "far"), "far"):
        monkeypatch.setenv("NANDLAB_TRACES", folder)
        assert len(nandlab.Study.load(tmp_path / "s.toml").runs) == 1


MISTAKES = [
    ('title = "Small"', "", "study.title: missing"),
    ('question = "Which victim?"', "question = 5", "s.toml:3: study.question: expected a string, found a number"),
    ('base = "base.toml"', 'base = "bsae.toml"', "s.toml:4: study.base: cannot read"),
    ("[variants.fifo]", "[varaints.fifo]", "varaints: unknown key\n  remedy: did you mean variants?"),
    ('"gc.victim" = "fifo"', '"gc.victim" = "fif"', 's.toml:10: gc.victim: unknown value "fif"'),
    ('"gc.victim" = "fifo"', '"gc.victm" = "fifo"', "s.toml:10: gc.victm: unknown key"),
    ("[0.25, 0.5]", "[0.25, 0.5, -3]", "s.toml:18: drive.op: the number -3 is out of range"),
    ('"drive.op" = [', 'waf = [1]\n"drive.op" = [', "s.toml:18: grid.waf: a result of each run has this name\n"),
    ('"drive.op" = [', 'run = [1]\n"drive.op" = [', "s.toml:18: grid.run: a column has this name already\n"),
    ('"drive.op" = [', 'limit = [1]\n"drive.op" = [', 'for "{limit}" in a set, declare limit in [values]'),
    ("[0.25, 0.5]", "[0.25, 0.25]", "s.toml:18: grid.drive.op.1: duplicate value 0.25"),
    ('over = "drive.op"', 'over = "drive.po"', "s.toml:27: figures.0.over: unknown column"),
    ('kind = "bar"', 'kind = "pie"', 's.toml:36: figures.1.kind: unknown value "pie"'),
    ('normalised_to = "greedy"', 'normalised_to = "gredy"', "did you mean greedy?"),
    ('metric = "steady.waf"', 'metric = "steady.waf +"', "is not an expression"),
    ('metric = "waf"', 'metric = "open(waf)"', "unknown function open"),
    ('metric = "steady.waf"', 'metric = "steady.wfa"', 'figures.waf.metric: no metric "steady.wfa"'),
    ('figure = "waf"\nwhat = "It', 'figure = "wafs"\nwhat = "It', 'claims.1.figure: unknown figure "wafs"'),
    ("value = 1.1", 'value = "1.1"', "s.toml:49: claims.0.value: expected a number, found a string"),
    ("{ absolute = 5.0 }", "{ absolute = -5.0 }", "s.toml:50: claims.0.tolerance.absolute: expected at least 0"),
    ("{ absolute = 5.0 }", "5", "tolerance: expected { relative = 0.02 } or { absolute = 0.1 }, found a number"),
    ('variant = "fifo", workload', 'variant = "fof", workload', "s.toml:53: claims.0.measure.where.variant: 'fof'"),
    ('workload = "uniform", "drive.op" = 0.5', 'workload = "uniform"', "expected one run, found 2"),
    ("[grid]", "[grid\n", "s.toml:17: "),
    ("[workloads.skewed]", '[workloads.skewed]\ntrace = "no.csv"', "s.toml:15: workload.trace: cannot read no.csv"),
    ('[variants.greedy]\nset = { ', '[variants.greedy]\nset = { "drive.op" = 1.0, ', "for the same run"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "message"), MISTAKES)
def test_an_error_is_reported_with_its_line(here, right, wrong, message):
    import nandlab

    assert right in STUDY
    (here / "s.toml").write_text(STUDY.replace(right, wrong, 1))
    with pytest.raises(nandlab.NandlabError) as refused:
        nandlab.Study.load(here / "s.toml").run(here / "o", workers=1)
    assert message in str(refused.value).replace(f"{here}/", "")
    assert not (here / "o" / "report.html").exists()


def refused(path):
    """The error for a study file; asserts that the file is refused within 3 s of CPU time, and the error is short."""
    import nandlab
    import nandlab.study.definition  # imported before the clock starts, because the import takes time

    begin = time.process_time()
    with pytest.raises(nandlab.NandlabError) as error:
        nandlab.Study.load(path)
    assert time.process_time() - begin < 3
    text = str(error.value).replace(f"{path.parent}/", "")
    assert len(text) < 25_000 and text.replace("\n", "").isprintable()
    return text


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "..", ".hidden", "a/b", "a b", "", "x" * 101])
@pytest.mark.parametrize("what", ["study.name", "figures.0.id"])
def test_a_name_cannot_lead_out_of_the_folder(here, what, name):
    right = {"study.name": ('title = "Small"', f'title = "Small"\nname = "{name}"', 3)}
    right["figures.0.id"] = ('id = "waf"', f'id = "{name}"', 24)
    before, after, line = right[what]
    (here / "s.toml").write_text(STUDY.replace(before, after, 1))
    message = refused(here / "s.toml")
    assert f's.toml:{line}: {what}: "{name[:77]}' in message
    assert "cannot name a file\n  remedy: use letters, digits" in message


@pytest.mark.parametrize(
    ("file", "name"), [("a b.toml", "a-b"), ("...toml", "study"), ("x/study.toml", "x"), ("x/y/../study.toml", "x")]
)
def test_a_study_without_a_name_has_the_name_of_its_file(tmp_path, file, name):
    import nandlab

    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / file).write_text(
        '[study]\ntitle = "T"\nquestion = "Q"\n[base]\nseed = 1\n[base.workload]\nprofile = "msr/hm_0"\n'
    )
    assert nandlab.Study.load(tmp_path / file).name == name


SECRETS = [
    ("root:S3CRET:19000:0:99999", "1: not TOML"),
    ("a = 1\nroot:S3CRET:19000", "2: not TOML"),
    ('S3CRET = 1\nS3CRET = "S3CRET"', "2: not TOML"),
    ("S3CRET = " + 5000 * "9", "1: not TOML"),
    ("S3CRET = " + 5000 * "[", "1: not TOML"),
    ("S3CRET = " + 50 * "[" + 50 * "]", "1: nested more than 32 levels deep"),
    ("S3CRET" * 100_000, "more than 256 KiB"),
    ("\udcffS3CRET", "not UTF-8 text"),
]


@pytest.mark.parametrize(("secret", "message"), SECRETS, ids=range(len(SECRETS)))
def test_an_error_does_not_quote_a_base_that_is_no_spec(here, secret, message):
    (here / "base.toml").write_text(secret, errors="surrogateescape")
    text = refused(here / "s.toml")
    assert text.startswith("s.toml:4: study.base: ") and message in text and "remedy: " in text
    assert "S3CRET" not in text


def test_an_error_of_the_core_does_not_quote_a_base_that_is_no_spec(here, monkeypatch):
    from nandlab.study import definition

    (here / "base.toml").write_text("root:S3CRET:19000:0")
    parse = definition.parse
    monkeypatch.setattr(definition, "parse", lambda text, origin: parse("" if "S3C" in text else text, origin))
    text = refused(here / "s.toml")
    assert "base.toml:1: not TOML" in text and "S3CRET" not in text


@pytest.mark.parametrize("key", ["base", "trace"])
def test_pipes_and_devices_are_not_read(here, key):
    os.mkfifo(here / "pipe")
    for path in ("pipe", "/dev/zero"):
        text = STUDY.replace("base.toml", path) if key == "base" else STUDY + f'[workloads.w]\ntrace = "{path}"\n'
        (here / "s.toml").write_text(text)
        message = f"cannot read {path}: not a regular file" if key == "base" else f"{path} can be read only once"
        assert message in refused(here / "s.toml")


EXPRESSIONS = [
    "(" * 9000 + "a",
    "(" * 400 + "a" + ")" * 400,
    "-" * 9000 + "a",
    "-" * 900 + "a",
    "+".join("a" * 400),
    ".".join("a" * 400),
    "a" + "['x']" * 190,
    "not " * 240 + "a",
    "9" * 5000,
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=range(len(EXPRESSIONS)))
def test_an_expression_has_limits(here, expression):
    (here / "s.toml").write_text(STUDY.replace('metric = "steady.waf"', f'metric = "{expression}"'))
    message = refused(here / "s.toml")
    what = "operations or brackets nested more than 50 levels deep"
    if len(expression) > 1000:
        what = f"an expression of {len(expression):,} characters; the limit is 1,000"
    remedy = "define parts of the expression as metrics in [metrics]"
    assert message == f"s.toml:26: figures.0.metric: {what}\n  remedy: {remedy}"


def test_expressions_within_the_limits():
    from nandlab.study.expression import Expression

    for text, value in [("-" * 50 + "a", 2), ("+".join("a" * 51), 102), ("(" * 50 + "a" + ")" * 50, 2)]:
        assert Expression.parse(text).value({"a": 2}) == value
    # The value of an expression takes no unlimited time and is not complex.
    for text in ("10**10**10**10", "9" * 999, "(0-8)**0.5", "abs((0-8)**0.5)", "at(n, (0-8)**0.5)", "at(n, 10**300)"):
        assert Expression.parse(text).value({"n.1": 1}) in (None, 0)


LIMITS = [
    ("x = " + "[" * 50 + "]" * 50, "s.toml:9: nested more than 32 levels deep"),
    ("x = " + "{a=" * 20_000 + "1" + "}" * 20_000, "s.toml:9: not TOML: cannot recurse further"),
    ("x = " + "[" * 20_000, "s.toml:9: not TOML: cannot recurse further"),
    ("a." * 100_000 + "a = 1", "s.toml:9: not TOML: more than 64 points in a key"),
    ("[" + "a." * 100_000 + "a]", "s.toml:9: not TOML: more than 64 points in a key"),
    ("x = [ } ]", "s.toml:9: "),
    ("x", "s.toml:9: "),
    ("x = " + "9" * 5000, "4300 digits"),
    ("x = 0x" + "f" * 5000, "s.toml:9: values.x: a number beyond 64 bits"),
    ("x = inf", "s.toml:9: values.x: a number that is not finite"),
    ("x = 2024-01-01", "s.toml:9: values.x: a date or time"),
    ('x = "a\\u001b[2J"', "s.toml:9: values.x: a control character"),
    ("x = [" + "1," * 1001 + "]", "s.toml:9: values.x: 1,001 entries; the limit is 1,000"),
    ("\n".join(f"x{i} = 1" for i in range(1001)), "s.toml:8: values: 1,001 entries; the limit is 1,000"),
    ("x" * 101 + " = 1", "s.toml:9: values." + "x" * 70 + "...: not a name"),
    (f'x = "{"y" * 10_001}"', "s.toml:9: values.x: a string of 10,001 characters; the limit is 10,000"),
    (f'x = "{"y" * 1001}"', "s.toml:9: values.x: more than 1,000 characters"),
    ("#" * 300_000, "s.toml: more than 256 KiB"),
    ("[grid]\nseed = [" + ",".join(map(str, range(1000))) + ']\n"drive.op" = [1,2,3,4,5,6]', "more than 10,000 runs"),
    ("[grid]\n" + "\n".join(f'"k{i}" = [1, 2, 3]' for i in range(1000)), "s.toml:9: grid: more than 10,000 runs"),
    ("".join(f"[variants.v{i}]\n[parts.p{i}]\n" for i in range(200)), "grid: more than 10,000 runs"),
    ("[[figures]]\n" * 1001, "s.toml:9: figures: 1,001 entries"),
    ("[[claims]]\n" * 1001, "s.toml:9: claims: 1,001 entries"),
    ("[[claims]]\n" * 1000, "claims.3.figure: missing"),
    (f'[variants.v]\nset = {{ "gc.victim" = [{"9999," * 1000}], "gc.pacing" = [{"[9999]," * 1000}], '
     f'"ecc.levels" = [{"[9999]," * 1000}] }}', "the overrides of the run v have more than 20,000 characters"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), LIMITS, ids=range(len(LIMITS)))
def test_a_study_file_has_limits(here, text, message):
    head = (
        '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n[variants.a]\n[variants.b]\n[variants.c]\n[values]\n'
    )
    (here / "s.toml").write_text(head + text + "\n")
    assert message in refused(here / "s.toml")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('kind = "bar"', 'kind = "{}"'),
        ('over = "drive.op"', 'over = "{}"'),
        ('panels = "workload"', 'panels = "{}"'),
        ('panels = "workload"', 'series = ["{}", 1, [2]]'),
        ('normalised_to = "greedy"', 'normalised_to = "{}"'),
        ('metric = "steady.waf"', 'metric = "[{}"'),
        ('workload = "uniform"', 'workload = "{}"'),
        ('figure = "waf"', 'figure = "{}"'),
        ('reduce = "mean"', 'reduce = "{}"'),
        ("[0.25, 0.5]", '[0.25, "{}"]'),
        ("[0.25, 0.5]", '["{0}", "{0}"]'),
        ('"gc.victim" = "fifo"', '"gc.victim" = "{{{}}}"'),
        ("[workloads.skewed]", '[workloads.skewed]\ntrace = "${}"'),
    ],
)
def test_an_error_quotes_only_a_part_of_a_long_value(here, right, wrong):
    (here / "s.toml").write_text(STUDY.replace(right, wrong.format("x" * 900), 1))
    message = refused(here / "s.toml")
    assert "x" * 90 not in message and "xxx..." in message


def test_similar_names_are_suggested_for_at_most_20_wrong_names(here):
    variants = "".join(f"[variants.{'v' * 80}{i}]\nset = {{ seed = {i} }}\n" for i in range(900))
    wrong = ", ".join(f'"{"v" * 79}x{i}"' for i in range(900))
    (here / "s.toml").write_text(
        STUDY.replace("[grid]", variants + "[grid]").replace(
            '"greedy"\nkind', f'"greedy"\nwhere = {{ variant = [{wrong}] }}\nkind'
        )
    )
    assert refused(here / "s.toml").count("remedy: did you mean vvv") == 20


def test_all_errors_are_reported_together_and_nothing_is_run(here):
    text = STUDY.replace('kind = "bar"', 'kind = "pie"').replace("value = 1.1", "vlaue = 1.1").replace('"Small"', "1")
    (here / "s.toml").write_text(text)
    done = command("study", "s.toml", cwd=here)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for message in ("s.toml:2: study.title", "s.toml:36: figures.1.kind", "s.toml:49: claims.0.vlaue: unknown key"):
        assert message in done.stderr
    assert "did you mean value?" in done.stderr
    assert not (here / "out").exists()


def test_an_error_in_the_base_is_reported_once_with_the_line_of_the_base(here):
    (here / "base.toml").write_text(BASE.replace("op = 0.25", "po = 0.25"))
    done = command("study", "s.toml", cwd=here)
    assert done.returncode == 2
    assert "base.toml:8: drive.po: unknown key" in done.stderr
    assert done.stderr.count("drive.po: unknown key") == 1, "the error is repeated for every run"


def test_the_base_may_be_written_in_the_study_file(here):
    import nandlab

    inline = "\n".join(
        f"[base.{row[1:]}" if row.startswith("[") else row for row in BASE.splitlines() if row[:4] != "seed"
    )
    (here / "s.toml").write_text(STUDY.replace('base = "base.toml"\n', "") + inline.replace("[base.", "\n[base.", 1))
    assert len(nandlab.Study.load(here / "s.toml").runs) == 8
    (here / "s.toml").write_text(
        (here / "s.toml").read_text().replace("blocks_per_plane = 64", "blocks_per_plane = -1")
    )
    with pytest.raises(nandlab.StudyError, match=r"s\.toml:\d+: drive\.blocks_per_plane"):
        nandlab.Study.load(here / "s.toml")


def test_a_study_as_a_mapping(here):
    import nandlab

    tables = tomllib.loads((here / "s.toml").read_text())
    read, made = nandlab.Study.load(here / "s.toml"), nandlab.Study.from_dict(tables, folder=here)
    assert [run.identity for run in made.runs] == [run.identity for run in read.runs]
    assert made.name == "study" and nandlab.Study.from_dict(tables, folder=here, seeds=1).runs != made.runs
    base = {"base": tomllib.loads((here / "base.toml").read_text())}
    del tables["study"]["base"]
    within = nandlab.Study.from_dict(tables | base | {"study": tables["study"] | {"name": "mine"}}, folder=here)
    assert within.name == "mine" and len(within.runs) == len(read.runs)
    with pytest.raises(nandlab.StudyError, match="expected a study, found a file without"):
        nandlab.Study.from_dict({"variants": {}})
