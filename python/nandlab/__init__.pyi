"""The exported names of the package; each name is imported at its first use."""

from . import live, trace
from ._core import Cache, CacheCounts, FlashRead, Lane, NandlabError, RunError, SpecError, TraceError
from .calibration import Calibration, calibrate
from .comparison import Comparison, compare
from .drive import CachePages, Capacitor, Completion, Drive
from .errors import OutputError
from .ldpc import CodecResult, codec
from .lifetime import Life, LifeStopped, life
from .pages import report
from .power_test.test import PowerTest, powertest
from .python_policies import param, policy
from .rber import Reliability, reliability
from .results import RunResult
from .simulate import Progress, run
from .spec import Spec, load, policies, presets, schema, version
from .study import Study, StudyError, StudyResult

__version__: str

__all__ = [
    "Cache",
    "CacheCounts",
    "CachePages",
    "Calibration",
    "Capacitor",
    "CodecResult",
    "Comparison",
    "Completion",
    "Drive",
    "FlashRead",
    "Lane",
    "Life",
    "LifeStopped",
    "NandlabError",
    "OutputError",
    "PowerTest",
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
    "calibrate",
    "codec",
    "compare",
    "life",
    "live",
    "load",
    "param",
    "policies",
    "policy",
    "powertest",
    "presets",
    "reliability",
    "report",
    "run",
    "schema",
    "trace",
    "version",
]
