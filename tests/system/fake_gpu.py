# SPDX-License-Identifier: Apache-2.0
"""Drivers and plugins for GPUs that are none, made with the compiler of the build."""
import os
import re
import subprocess

from tenon_process import BINARY, TENON

# What is asked of the driver before anything else.
DRIVER = """extern "C" int cuDriverGetVersion(int* version) { *version = %d; return 0; }"""

# core/device/device_plugin.h: after the version what is checked next, and nothing that may be called.
PLUGIN = """
struct Plugin { const char* version; unsigned char kind; int driver_version; void* functions[3]; };
%s
extern "C" const Plugin* %s() {
  static const Plugin plugin = {"%s", 1, 13000, {}};
  %s
  return &plugin;
}"""


def compiler():
    with open(os.path.join(BINARY, "CMakeCache.txt"), encoding="utf-8") as cache:
        return re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache.read(), re.M).group(1)


def library(folder, name, source):
    """The path of a shared library."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path + ".cc", "w", encoding="utf-8") as out:
        out.write(source)
    subprocess.run([compiler(), "-shared", "-fPIC", "-o", path, path + ".cc"], check=True)
    return path


def driver(folder, version):
    """The folder, with a driver for CUDA `version` (13000 is 13.0)."""
    library(folder, "libcuda.so.1", DRIVER % version)
    return folder


def plugin(folder, version, function="TenonDevicePlugin", declare="", call=""):
    return library(folder, f"libtenon_cuda{len(os.listdir(folder))}.so",
                   PLUGIN % (declare, function, version, call))


def run(*command, driver=None, plugin=None):
    """The finished process, which finds that driver and that plugin."""
    environment = {k: v for k, v in os.environ.items()
                   if k not in ("TENON_CUDA_PLUGIN", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")}
    if driver is not None:
        environment["LD_LIBRARY_PATH"] = driver
    if plugin is not None:
        environment["TENON_CUDA_PLUGIN"] = plugin
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, env=environment)


def devices(driver=None, plugin=None, tenon=TENON):
    """The lines of `tenon devices`, the last of which says why there is no GPU."""
    done = run(tenon, "devices", driver=driver, plugin=plugin)
    assert done.returncode == 0 and done.stderr == "", done
    lines = done.stdout.splitlines()
    assert lines[0].startswith("/device:CPU:0 "), lines
    return lines


def has_driver():
    """Whether this machine has a driver of its own."""
    return "there is no NVIDIA driver" not in devices()[-1]
