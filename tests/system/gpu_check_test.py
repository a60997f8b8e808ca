#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_check.sh on the simulated device, and with programs that fail as those on a GPU may."""
import os
import subprocess
import tempfile

from tenon_process import BINARY, SOURCE, main

CHECK = os.path.join(SOURCE, "tools", "gpu_check.sh")
SIMULATED = os.path.join(BINARY, "simulated")
TENON = '#!/bin/sh\necho "/device:GPU:0  a device"\n'


def write_program(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


def check(stage, programs, **environment):
    """The exit code and what is printed of a stage."""
    with tempfile.TemporaryDirectory() as logs:
        done = subprocess.run([CHECK, stage, "--programs", programs, "--logs", logs], text=True, timeout=280,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              env={**os.environ, **environment})
    return done.returncode, done.stdout


def a_host_without_a_gpu_fails():
    code, text = check("all", BINARY, TENON_CUDA_PLUGIN="/nowhere", LD_LIBRARY_PATH="")
    assert code == 1 and "no GPU: " in text and "FAILED: wanted a GPU" in text, text


def training_is_on_the_gpu():
    code, text = check("training", BINARY, LD_LIBRARY_PATH=SIMULATED,
                       TENON_CUDA_PLUGIN=os.path.join(SIMULATED, "libtenon_simulated.so"))
    assert code == 0 and text.endswith("nothing failed\n"), text
    assert text.count(" ok\n") == 6, text


def an_op_that_kills_the_process_is_a_row_and_the_others_follow():
    with tempfile.TemporaryDirectory() as folder:
        write_program(folder, "tenon", TENON)
        write_program(folder, "gpu_tests", """#!/bin/bash
table() { printf "$@" >>"$TENON_GPU_TABLE"; }
case $1 in *EveryOp*) ;; *) table 'small\\tfloat\\t1\\t0\\tok\\n'; exit 0 ;; esac
case $TENON_GPU_AFTER in
  '') table '> Abs\\nAbs\\tfloat\\t3\\t0\\tok\\n> Acos\\n'; kill -SEGV $$ ;;
  Acos) table '> Add\\nAdd\\tfloat\\t3\\t0.5\\tFAILED found 1, wanted 2\\n! ERROR: it is lost\\n'; exit 3 ;;
  Add) table '> Mul\\nMul\\tfloat\\t3\\t0\\tok\\n> Enter\\nEnter\\t-\\t0\\t0\\tnot run: frames\\n'; exit 1 ;;
esac
""")
        code, text = check("conformance", folder)
        rows = {line.split()[0]: line for line in text.splitlines() if line}
        assert code == 1 and text.endswith("3 FAILED\n"), text
        assert rows["Abs"].endswith(" ok") and rows["Mul"].endswith(" ok"), text
        assert "FAILED killed by signal 11, SEGV" in rows["Acos"], text
        assert rows["Add"].endswith("FAILED found 1, wanted 2"), text
        assert "FAILED the GPU does not compute any more ERROR: it is lost" in rows["behind"], text
        assert "1 ops do nothing alone" in text, text


def what_a_sanitizer_says_is_read():
    with tempfile.TemporaryDirectory() as folder:
        write_program(folder, "tenon", TENON)
        write_program(folder, "gpu_tests", '#!/bin/sh\nprintf "Add\\tfloat\\t1\\t0\\tok\\n" >>"$TENON_GPU_TABLE"\n')
        write_program(folder, "compute-sanitizer", """#!/bin/bash
case $2 in
  memcheck) "$5"; echo "========= ERROR SUMMARY: 0 errors" ;;
  racecheck) "$5"; echo "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"; exit 42 ;;
  initcheck) echo "========= Error: Target application terminated before first instrumented API call"; exit 1 ;;
esac
""")
        code, text = check("sanitizer", folder, PATH=folder + ":" + os.environ["PATH"])
        rows = {line.split()[0]: line for line in text.splitlines() if line}
        assert code == 1 and text.endswith("1 FAILED\n"), text
        assert "ok (ERROR SUMMARY: 0 errors)" in rows["memcheck"], text
        assert "FAILED ended with 42, RACECHECK SUMMARY: 1 hazard" in rows["racecheck"], text
        assert "not run: " in rows["initcheck"] and "before first instrumented" in rows["initcheck"], text


def test():
    cases = [a_host_without_a_gpu_fails, an_op_that_kills_the_process_is_a_row_and_the_others_follow,
             what_a_sanitizer_says_is_read]
    if os.path.exists(SIMULATED):
        cases.append(training_is_on_the_gpu)
    return main([(case.__name__.replace("_", " "), case) for case in cases])


if __name__ == "__main__":
    raise SystemExit(test())
