"""If a run has the verdict `steady`, a run of twice the length has the same verdict, and the same WAF within 5 %.

`make steady` also plays the demo, which takes minutes.
"""

import os
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

#: A look-alike of hm_0 on a drive whose refresh programs more than half as many pages as the host writes.
REFRESHED = """\
seed = 3
[drive]
channels = 2
chips_per_channel = 2
planes_per_die = 2
blocks_per_plane = 64
pages_per_block = 64
page_size = "8KiB"
op = 0.2
endurance = 100000
[precondition]
used = 0.9
valid = 0.85
[reliability]
clock_scale = 200000
[refresh]
policy = "fcr"
interval = [{ pe = 100000, every = "30d" }]
[workload]
profile = "msr/hm_0"
requests = 120_000
beyond = "wrap"
arrival = { queue_depth = 8 }
"""


#: The demo on the whole drive of its preset. On a quarter of it the verdict is `steady`, too, but WAF falls by a tenth
#: at twice the length.
DEMO = {"drive.blocks_per_plane": 1024}
#: By case: the spec, its overrides, the repetitions of its workload, and overrides with which a run is too short.
CASES = {
    "small": (EXAMPLES / "small.toml", {}, 2, {"workload.synthetic.requests": 50_000}),
    "refresh": (REFRESHED, {}, 2, None),
    "demo": (EXAMPLES / "demo.toml", DEMO, 4, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_steady_run_is_steady_at_twice_the_length(case):
    import nandlab

    if case == "demo" and "NANDLAB_STEADY" not in os.environ:
        pytest.skip("the demo at eight times its length takes minutes: make steady")
    spec, sets, repeat, short = CASES[case]
    once = nandlab.run(spec, sets=sets | {"workload.repeat": repeat}).summary
    assert once.steady_state.verdict == "steady"
    if case == "refresh":
        assert once.flash.program.refresh > 0.5 * once.flash.program.host
    else:
        assert nandlab.run(spec, sets=sets | short).summary.steady_state.verdict == "too short"
    twice = nandlab.run(spec, sets=sets | {"workload.repeat": 2 * repeat}).summary
    assert twice.steady_state.verdict == "steady"
    assert twice.waf == pytest.approx(once.waf, rel=0.05)
    window = [run["steady_state"]["waf"]["mean"] for run in (once, twice)]
    assert window[1] == pytest.approx(window[0], rel=0.05)
