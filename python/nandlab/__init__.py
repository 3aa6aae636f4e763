"""nandlab: a laboratory for SSD controllers.

    import nandlab

    result = nandlab.run("examples/demo.toml", sets={"gc.victim": "fifo"})
    result.summary.waf                    # summary.json, typed: nandlab.result_types.Summary
    result.series                         # statistics over time, a polars data frame
    result.save("out/fifo")               # the files that `nandlab run` writes
    nandlab.report("out/fifo")            # out/fifo/report.html

    study = nandlab.Study.load("studies/garbage-collection")
    study.run(workers=2).results          # many runs, one table

The package has every function of the command `nandlab`. A name contains its unit: `time_s`, `latency_us_read_mean`.
Errors of specs, traces, runs and files are subclasses of `NandlabError`.
"""

import lazy_loader

from nandlab._core import version as _version

# `__init__.pyi` lists the exported names and their modules.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = _version()
__all__ += ["__version__"]
