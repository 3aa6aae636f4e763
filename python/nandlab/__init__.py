"""nandlab: a laboratory for SSD controllers.

    import nandlab

    result = nandlab.run("examples/demo.toml", sets={"gc.victim": "fifo"})
    result.summary.waf                    # what summary.json holds, typed: nandlab.result_types.Summary
    result.series                         # the run over time, a polars data frame
    result.save("out/fifo")               # the same files the command writes
    nandlab.report("out/fifo")            # out/fifo/report.html

    study = nandlab.Study.load("studies/garbage-collection")
    study.run(workers=2).results          # many runs, one table

Everything the command does, this package does. Units are the last word of a name (`time_s`, `latency_us_read_mean`).
"""

import lazy_loader

from nandlab._core import version as _version

# The names are those of `__init__.pyi`.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = _version()
__all__ += ["__version__"]
