#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Why there is no GPU is said in one line, by `tenon devices` and by what wants one: no driver, one that
is too old, no plugin, one of another version, or one that is broken."""
import os
import re
import shutil
import sys
import tempfile

from fake_gpu import devices, driver, has_driver, plugin, run
from tenon_process import BINARY, GRAPHS, TENON, main


def reason(*args, **kwargs):
    lines = devices(*args, **kwargs)
    assert len(lines) == 2 and lines[1].startswith("no GPU: "), lines
    return lines[1][len("no GPU: "):]


def absences(folder):
    """Checks all of them, and gives the version that a plugin must have."""
    if not has_driver():
        assert reason().startswith("there is no NVIDIA driver: libcuda.so.1: cannot open"), reason()
    new = driver(os.path.join(folder, "new"), 13000)
    old = driver(os.path.join(folder, "old"), 12040)

    # Missing: where it is said to be, and in all the places where it is looked for otherwise.
    nowhere = os.path.join(folder, "nowhere.so")
    assert reason(new, nowhere) == ("the plugin for GPUs is missing: TENON_CUDA_PLUGIN names "
                                    f"{nowhere}, where there is no file"), reason(new, nowhere)
    alone = os.path.join(folder, "bin")
    os.mkdir(alone)
    shutil.copy(TENON, alone)
    missing = reason(new, tenon=os.path.join(alone, "tenon"))
    real = os.path.realpath(alone)
    assert missing == ("the plugin for GPUs is missing: libtenon_cuda.so is neither in "
                       f"{real}, {real}/../lib nor where the loader looks; TENON_CUDA_PLUGIN may "
                       "name it"), missing

    # A plugin of another version is known before anything else is read of it.
    other = plugin(folder, "0.0.1+feedfeedfeed")
    found = re.fullmatch(rf"the plugin for GPUs, {re.escape(other)}, is of another version: found "
                         r"0\.0\.1\+feedfeedfeed, wanted (\d+\.\d+\.\d+\+[0-9a-f]{12})",
                         reason(new, other))
    assert found, reason(new, other)
    version = found.group(1)

    # It is found beside the executable and in ../lib.
    for place in (alone, os.path.join(folder, "lib")):
        os.makedirs(place, exist_ok=True)
        copy = os.path.join(place, "libtenon_cuda.so")
        shutil.copy(other, copy)
        text = reason(new, tenon=os.path.join(alone, "tenon"))
        assert "is of another version" in text and "libtenon_cuda.so" in text, text
        os.remove(copy)

    # A driver that is too old for it.
    fits = plugin(folder, version)
    assert reason(old, fits) == ("the NVIDIA driver is too old: found one for CUDA 12.4, wanted "
                                 "CUDA 13.0 or newer"), reason(old, fits)

    # Broken ones.
    unbound = plugin(folder, version, declare="void NobodyHasThis();", call="NobodyHasThis();")
    text = reason(new, unbound)
    assert text.startswith("the plugin for GPUs cannot be loaded: ") and "NobodyHasThis" in text, text
    stranger = plugin(folder, version, function="SomethingElse")
    assert "has no function TenonDevicePlugin" in reason(new, stranger), reason(new, stranger)
    return new, other


def askers(new, other):
    """What wants a GPU fails with the reason; what only would like one does not."""
    graph = os.path.join(GRAPHS, "while_v1.pb")
    step = ["--feed", "x=[[1,2],[3,4]]", "--feed", "n=1", "--fetch", "count"]
    reasons = [(None, None, "there is no NVIDIA driver")] if not has_driver() else []
    for driver_, plugin_, why in [*reasons, (new, other, "is of another version")]:
        done = run(TENON, "run", graph, "--gpus", "1", *step, driver=driver_, plugin=plugin_)
        assert done.returncode == 1 and "wanted 1 GPU" in done.stderr, done
        assert why in done.stderr and done.stderr.count("\n") == 1, done
        done = run(TENON, "run", graph, "--place", ".*=/device:GPU:0", *step, driver=driver_,
                   plugin=plugin_)
        assert done.returncode == 1 and "explicitly assigned to /device:GPU:0" in done.stderr, done
        assert "No GPU is there: " in done.stderr and why in done.stderr, done
        done = run(TENON, "serve", "--port", "0", "--gpus", "1", driver=driver_, plugin=plugin_)
        assert done.returncode == 1 and "wanted 1 GPU" in done.stderr and why in done.stderr, done
        done = run(TENON, "devices", "--gpus", "1", driver=driver_, plugin=plugin_)
        assert done.returncode == 1 and "no GPU: " in done.stdout and why in done.stdout, done
    done = run(TENON, "run", graph, "--gpus", "0", "--place", ".*=/device:GPU:0", *step)
    assert "No GPU is there: it has been asked to use none" in done.stderr, done
    done = run(TENON, "run", graph, "--config", "gpu_options { visible_device", *step)
    assert done.returncode == 2 and "wanted the text of a ConfigProto" in done.stderr, done
    done = run(TENON, "devices", "--config", 'device_count { key: "CPU" value: 3 } '
               'device_count { key: "GPU" value: 4 }')
    assert done.returncode == 0 and "/device:CPU:2 " in done.stdout, done


def real_plugin(new):
    """The plugin of this build finds in the program all that it needs."""
    path = os.path.join(BINARY, "libtenon_cuda.so")
    if not os.path.exists(path):
        print("no plugin in this build: it was not loaded")
        return
    assert reason(new, path).startswith("the NVIDIA driver shows no GPU: "), reason(new, path)
    done = run(TENON, "run", os.path.join(GRAPHS, "while_v1.pb"), "--feed", "x=[[1,2],[3,4]]",
               "--feed", "n=1", "--place", ".*=/device:GPU:0", "--fetch", "count", driver=new)
    assert "No GPU is there: the NVIDIA driver shows no GPU" in done.stderr, done


def test():
    with tempfile.TemporaryDirectory() as folder:
        new, other = absences(folder)
        askers(new, other)
        real_plugin(new)


if __name__ == "__main__":
    sys.exit(main([("absences of GPUs", test)]))
