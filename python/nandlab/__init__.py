"""nandlab: a laboratory for SSD controllers.

    import nandlab

    result = nandlab.run("examples/demo.toml", sets={"gc.victim": "fifo"})
    result.summary["waf"]                 # what summary.json holds
    result.series                         # the run over time, a polars data frame
    result.save("out/fifo")               # the same files the command writes
    nandlab.report("out/fifo")            # out/fifo/report.html

    study = nandlab.Study.load("studies/garbage-collection")
    study.run(workers=2).results          # many runs, one table

Everything the command does, this package does. Units are the last word of a name (`time_s`, `latency_us_read_mean`).
"""

from nandlab import trace
from nandlab._core import NandlabError, RunError, SpecError, TraceError
from nandlab.drive import CachePages, Capacitor, Completion, Drive
from nandlab.errors import OutputError
from nandlab.lifetime import Life, LifeStopped, life
from nandlab.rber import Reliability, reliability
from nandlab.reporting import report
from nandlab.results import RunResult
from nandlab.simulate import Progress, run
from nandlab.spec import Spec, load, policies, presets, schema, version
from nandlab.study import Study, StudyError, StudyResult

__version__ = version()

__all__ = [
    "CachePages",
    "Capacitor",
    "Completion",
    "Drive",
    "Life",
    "LifeStopped",
    "NandlabError",
    "OutputError",
    "Progress",
    "Reliability",
    "RunError",
    "RunResult",
    "Spec",
    "SpecError",
    "Study",
    "StudyError",
    "StudyResult",
    "TraceError",
    "__version__",
    "life",
    "load",
    "policies",
    "presets",
    "reliability",
    "report",
    "run",
    "schema",
    "trace",
    "version",
]
