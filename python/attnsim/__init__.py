"""attnsim predicts how long distributed attention takes on a cluster, and chooses how to run it.

    import attnsim
    cluster = attnsim.Cluster("nd-h100-v5", nodes=8)
    layer = attnsim.Attention("1M", heads=64, kv_heads=8)
    attnsim.plan(cluster, layer).frame()
    attnsim.step(cluster, model="llama3-8b", seq="128K", cp=8, dp=8, shard="parameters").step_time_s

Times are in seconds, sizes in bytes, for one attention layer over all its heads.
"""

import os as _os
from pathlib import Path as _Path

if (_Path(__file__).parent / "topologies").is_dir():  # an installed package has them with it
    _os.environ.setdefault("ATTNSIM_TOPOLOGIES", str(_Path(__file__).parent / "topologies"))

from ._attnsim import (Attention, Calibration, Cluster, Infeasible, InputError, Pass, Plan, Prediction, Rejection,
                       Step, Strategy, Timeline, __version__, calibrate, clusters, devices, hosts, plan, predict, schedules,
                       simulate, step)

__all__ = ["Attention", "Calibration", "Cluster", "Infeasible", "InputError", "Pass", "Plan", "Prediction", "Rejection",
           "Step", "Strategy", "Timeline", "calibrate", "clusters", "devices", "hosts", "plan", "predict", "schedules",
           "simulate", "step"]
