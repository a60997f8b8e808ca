#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops of a user's own, declared and defined outside the tree: they run, have gradients and train in
this process and on a server of the same program, and mistakes in their use are found."""
import os
import re
import subprocess
import tempfile

import outside_project
import tenon_process

FOLDER = "tests/system/own_ops"

# scale = [1, 2], x = [[0.1, 0.2, 0.3], [0.1, 0.2, 0.5]], y = min(x * scale^2, 1), then the gradients of
# sum(y) by x and scale, and scale and sum(y) after a step of gradient descent at rate 0.5.
STEP = [[0.1, 0.2, 0.3, 0.4, 0.8, 1], [1, 1, 1, 4, 4, 0], [1.2, 1.2], [0.4, 1.4], [1.664]]


def line_of_mistake():
    source = outside_project.read(FOLDER, "main.cc").splitlines()
    return next(n for n, line in enumerate(source, 1) if line.endswith("// a mistake"))


def check(text):
    *numbers, mistake = text.splitlines()
    wanted = STEP + STEP  # here and on the server
    assert len(numbers) == len(wanted), text
    for line, values in zip(numbers, wanted):
        found = [float(word) for word in line.split()]
        assert len(found) == len(values), text
        assert all(abs(f - v) < 1e-5 for f, v in zip(found, values)), (found, values)
    pattern = (rf"INVALID_ARGUMENT: main\.cc:{line_of_mistake()}: node 'ScaleRows_\d+' \(ScaleRows\): "
               r"Dimension 0 in both shapes must be equal, but are 3 and 2\. "
               r"Shapes \[3\] and \[2\] are incompatible")
    assert re.fullmatch(pattern, mistake), f"found  {mistake}\nwanted {pattern}"


GENERATOR = os.path.join(tenon_process.BINARY, "tenon_generate_ops")


def registers(folder, source):
    """What the generator makes of ops and a source that says what they do."""
    with open(os.path.join(folder, "my.ops"), "w") as file:
        file.write('op My()\n  "Nothing."\n')
    with open(os.path.join(folder, "own.cc"), "w") as file:
        file.write(source)
    done = subprocess.run([GENERATOR, "my.ops", ".", "--register", "own.cc"], cwd=folder, text=True,
                          capture_output=True)
    if done.returncode != 0:
        return done.stderr.strip()
    with open(os.path.join(folder, "my_ops.cc")) as file:
        return re.findall(r"^ +(Register\w+)\(registry\);$", file.read(), re.M)


def check_basic(folder):
    """The functions of basic ops stand in a header of their own, if that is wished."""
    with open(os.path.join(folder, "some.ops"), "w") as file:
        file.write('op One() -> y: float [basic]\n  "1"\nop Two() -> y: float\n  "2"\n')
    call = [GENERATOR, "some.ops", "."]
    done = subprocess.run(call, cwd=folder, text=True, capture_output=True)
    assert done.stderr.strip() == "some.ops declares basic ops, for which --basic is wanted", done
    subprocess.run(call + ["--basic"], cwd=folder, check=True)
    for header, function in ("some_basic_ops.h", "One"), ("some_ops.h", "Two"):
        with open(os.path.join(folder, header)) as file:
            assert re.findall(r"^Output (\w+)\(", file.read(), re.M) == [function], header
    for wrong in ["some.ops"], ["some.ops", ".", "--what"]:
        done = subprocess.run([GENERATOR] + wrong, cwd=folder, text=True, capture_output=True)
        assert done.returncode == 1 and done.stderr.startswith("usage: "), done


def check_generator(folder):
    body = ' {\n  ops.Add("My", NoOutputShape, Nothing);\n}\n'
    assert registers(folder, "\nvoid RegisterA(OpRegistry& ops)" + body) == ["RegisterA"]
    wrapped = "\nvoid RegisterB(\n    OpRegistry& registry)" + body
    assert registers(folder, wrapped) == ["RegisterB"], registers(folder, wrapped)
    assert registers(folder, "// Nothing of ops.\n") == []
    assert registers(folder, "\nvoid AddMine(OpRegistry& ops)" + body) == (
        "own.cc registers ops, but has no 'void RegisterXxx(OpRegistry& ops) {'")


def main():
    with tempfile.TemporaryDirectory() as folder:
        names = os.listdir(os.path.join(outside_project.SOURCE, FOLDER))
        files = {name: outside_project.read(FOLDER, name) for name in names}
        programs = outside_project.build(folder, files)
        check(outside_project.run(os.path.join(programs, "own_ops")))
        check_generator(folder)
        check_basic(folder)
    print("ops of one's own: values, gradients and training, here and on a server")


if __name__ == "__main__":
    main()
