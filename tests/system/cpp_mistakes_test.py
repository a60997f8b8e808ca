#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What C++ users do wrong, in a program of its own against an installed Tenon: each mistake of
building ends in one line that names the line of the program, each of running in one that names the
tensor; nothing crashes."""
import os
import re
import signal
import sys
import tempfile

import outside_project
import tenon_process

FOLDER = "tests/system/cpp_mistakes"
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
LETTERS = r"letters, digits and any of _ \. - / > \\ are, after a letter, a digit or '\.'"
PRODUCT = r"Matrix size-incompatible: In\[0\]: \[2,3\], In\[1\]: \[2,3\]"

# The case in mistakes.cc: the message after the code and the place. Where the place is the line of
# the function that says `here`.
BUILDING = {
    "WrongDtype": r"node 'MatMul' \(MatMul\): Input 1 .*passed int32 from Placeholder_1:0 .*expected float of .*",
    "WrongDtypeOfAnOperator":
        r"node 'AddV2' \(AddV2\): Input 1 .*passed int32 from Placeholder_1:0 .*expected float of .*",
    "InnerDimensions": rf"node 'product' \(MatMul\): {PRODUCT}",
    "NoBroadcast": r"node 'Sub' \(Sub\): Incompatible shapes: \[2,3\] vs\. \[4\]",
    "FailedOutput": rf"node 'MatMul' \(MatMul\): {PRODUCT}",
    "AnotherGraph": r"node 'Neg' \(Neg\): argument 'x' of op Neg is of another graph than the one "
                    "being built",
    "AnotherGraphInDependencies":
        "what new nodes shall wait for is of another graph than the one being built",
    "AnotherGraphInColocation":
        "what new nodes shall be placed beside is of another graph than the one being built",
    "AnotherGraphInGradients": "a y of the gradient is of another graph than the one being built",
    "MisspeltAttribute": r"node 'MatMul' \(MatMul\): op MatMul has no attribute 'transpose_A'; it "
                         "has: transpose_a, transpose_b, T",
    "WrongAttribute": r"node 'MatMul' \(MatMul\): attr 'transpose_a' of op MatMul has the wrong "
                      "type: found float, wanted bool",
    "MissingAttribute": r"node 'Placeholder' \(Placeholder\): attr 'dtype' of op Placeholder is "
                        "missing",
    "UnknownOp": r"Op type not registered 'MatMull' in binary running on \S+\. `tenon ops` lists "
                 r"the ones that are\.",
    "NumberOfInputs": r"node 'MatMul' \(MatMul\): op MatMul takes 2 arguments, found 1",
    "EmptyList": r"node 'AddN' \(AddN\): attr 'N' must be at least 1, found 0",
    "LeftOut": r"node 'MatMul' \(MatMul\): Shape must be rank 2 but is rank 1: input 1 has shape \[0\]",
    "NodeName": rf"'a b:1' is no name of a node: {LETTERS}",
    "VariableName": rf"'my weights' is no name of a node: {LETTERS}",
    "ScopeName": rf"'hidden layer' is no name of a scope: {LETTERS}",
    "EmptyScopeName": rf"'' is no name of a scope: {LETTERS}",
    "NeverAssigned": r"node 'Neg' \(Neg\): argument 'x' of op Neg has no value",
    "NeverAssignedDependency": "what new nodes shall wait for has no value",
    "NeverAssignedNeighbour": "what new nodes shall be placed beside has no value",
    "NeverAssignedVariable": r"node 'Mul' \(Mul\): argument 'x' of op Mul has no value",
    "NeverAssignedLoss": "the loss has no value",
    "NumberAsPredicate": r"the predicate of a Cond must be a bool scalar, 'Const' is float\[\]",
    "NumberAsCondition": r"the condition of a while loop must be a bool scalar, '\S+' is int32\[\]",
    "ValuesOfATensor": r"found 3 values for a tensor of shape \[2,2\], wanted 4",
    "GradientOfAnInt": "gradients need a floating point loss; 'Square' is int32",
    "ComplexGradient": "gradients of the complex 'x' need grad_ys",
    "GradientOfNothing": "there is no y to take the gradient of",
    "ConstOfAnotherDtype": "the value is double, wanted float",
    "LengthOfAList": r"node 'IdentityN' \(IdentityN\): argument 'input' of op IdentityN takes 1 tensors, "
                     "found 2",
    "UnpackOfAMistake": rf"node 'MatMul' \(MatMul\): {PRODUCT}",
    "OutsideOfTheLoop": r"node 'AddV2' \(AddV2\): its input 'step' is in the while loop 'loop', 'five' "
                        "outside while loops: what a loop computes comes out as its results "
                        r"\(through Exit\), what it uses goes in through Enter, and a constant for a "
                        "loop waits for a node of it",
    "ConditionOutsideOfTheLoop": r"node 'step' \(Switch\): its input 'Merge' is in the while loop "
                                 "'loop', 'more' outside while loops: .*",
    "WaitingFromOutsideOfTheLoop": r"node 'next' \(NextIteration\): its input 'NoOp' is outside while "
                                   "loops, 'Merge' in the while loop 'loop': .*",
    "IndexOutOfRange": r"node 'strided_slice' \(StridedSlice\): .*",
    "TooManyIndices": r"node 'strided_slice' \(StridedSlice\): .*",
    "HalfARange": "a slice of 'Placeholder': a range has a begin, an end and perhaps a step, found 1 "
                  "numbers",
    "FractionAsIndex": "a slice of 'Placeholder': the literal 1.5 is no int64",
    "ShortAsIndex": "a slice of 'Placeholder': an index is a scalar of int32 or int64, found one of "
                    "int16",
    "LargeNumberBesideInt32": "a slice of 'Placeholder': a number beyond 32 bits stands beside "
                              "scalars of int32",
    "IndicesOfTwoDtypes": "a slice of 'Placeholder': indices of int32 and of int64 stand together",
    "TwoEllipses": "a slice of 'Placeholder': a slice has one kEllipsis at most",
    "NoPath": "'Square' does not depend on 'x' through differentiable ops, so it has no gradient",
    "NoGradient": r"node 'TruncateMod' \(TruncateMod\): the op has no gradient function",
    "NoOutput": r"node 'Neg' \(Neg\): argument 'x' of op Neg is output 0 of node 'NoOp' \(NoOp\), "
                "which has 0",
    "NoSuchOutput": r"node 'Neg' \(Neg\): argument 'x' of op Neg is output 3 of node 'Placeholder' "
                    r"\(Placeholder\), which has 1",
    "NumberOfGradYs": "found 2 grad_ys for 1 ys",
    "ShapeOfGradYs": r"'Const' is float\[3\], no gradient of 'Square', which is float\[2\]",
    "NoVariable": "the graph has no trainable variable",
    "NoTrainableVariable": "the graph has no trainable variable",
    "UnusedVariables": "'Square' depends through differentiable ops on no variable of: unused, too",
    "Fraction": r"node 'Mul' \(Mul\): argument 'y': the literal 3\.5 is no int32",
    "OutOfRange": r"node 'AddV2' \(AddV2\): argument 'y': the literal 300 is no uint8",
    "Text": r"node 'AddV2' \(AddV2\): argument 'y': the literal \"one\" is no float",
    "ConstDtype": "the literal -1 is no uint8",
    "Braces": r"node 'Add' \(Add\): argument 'y': the braces of a literal differ in length",
    "DeeperBraces": "the braces of a literal differ in length",
    "UnknownShapeOfAVariable": "the initial value of variable 'w' must have a known shape; "
                               r"'Placeholder' has \[\?,3\]",
    "DeviceName": r"'/job:ps/tusk:1' is not a device name; cannot read 'tusk:1', wanted job:NAME, "
                  "replica:N, task:N, device:TYPE:N, cpu:N or gpu:N",
    "FirstOfMany": rf"node 'MatMul' \(MatMul\): {PRODUCT}",
    "AskedAfterwards": rf"node 'MatMul' \(MatMul\): {PRODUCT}",
}

NOT_BUILT = "INVALID_ARGUMENT: a {} has no value in the graph: it could not be built"
RUNNING = {
    "feeding an unknown name": "NOT_FOUND: FeedInputs: unable to find feed output z",
    "feeding a name with a slip":
        r"NOT_FOUND: FeedInputs: unable to find feed output cuont; did you mean count\?",
    "fetching a name with a slip": r"NOT_FOUND: FetchOutputs node cuont: not found; did you mean count\?",
    "running a name with a slip":
        r"NOT_FOUND: PruneForTargets: Some target nodes not found: inti; did you mean init\?",
    "a device that there is not":
        r"INVALID_ARGUMENT: running\.cc:\d+: Cannot assign a device for operation far: \{\{node far\}\} was "
        rf"explicitly assigned to /device:FPGA:0 but available devices are \[ {CPU} \]\. .*"
        r"\n\t \[\[\{\{node far\}\}\]\]",
    "feeding an output that there is not":
        "INVALID_ARGUMENT: FeedInputs: x:1 should have output index < 1",
    "feeding a double": "INVALID_ARGUMENT: feed 'x' is double, wanted float",
    "feeding a wrong shape": r"INVALID_ARGUMENT: feed 'x' has shape \[3\], wanted \[2\]",
    "feeding a prepared step a wrong shape":
        r"INVALID_ARGUMENT: feed 'x' has shape \[3\], wanted \[2\]",
    "feeding a prepared step too little": "INVALID_ARGUMENT: found 0 feeds, wanted 1",
    "calling without the feed": "INVALID_ARGUMENT: found 0 feeds, wanted 1",
    "feeding twice": r'INVALID_ARGUMENT: Endpoint "x:0" fed more than once\.',
    "feeding what was not built": NOT_BUILT.format("feed"),
    "not feeding": rf"INVALID_ARGUMENT: running\.cc:\d+: node 'x' \(Placeholder\) on {CPU}: You must feed a value for "
                   r"placeholder tensor 'x' with dtype float and shape \[2\]\n"
                   r"\t \[\[\{\{node x\}\}\]\]",
    "fetching an unknown name": "NOT_FOUND: FetchOutputs node z: not found",
    "fetching an output that there is not":
        "INVALID_ARGUMENT: FetchOutputs y:7: output index too large, must be < 1",
    "fetching what was not built": NOT_BUILT.format("fetch"),
    "fetching as a number what was not built": NOT_BUILT.format("fetch"),
    "preparing what was not built": NOT_BUILT.format("fetch"),
    "running what was not built": NOT_BUILT.format("target"),
    "running an unknown name": "NOT_FOUND: PruneForTargets: Some target nodes not found: z ",
    "fetching a node without output":
        "INVALID_ARGUMENT: Tried to fetch data for 'init', which produces no output.*",
    "an int as a float": r"INVALID_ARGUMENT: fetch 'count' is int32\[\], wanted one float",
    "ints as floats": "INVALID_ARGUMENT: fetch 'count' is int32, wanted float",
    "a vector as a float": r"INVALID_ARGUMENT: fetch 'y' is float\[2\], wanted one float",
    "an int as a float, prepared": r"INVALID_ARGUMENT: fetch 'count' is int32\[\], wanted one float",
    "a variable that was not initialised":
        rf"FAILED_PRECONDITION: running\.cc:\d+: node 'w/read' \(Identity\) on {CPU}: Attempting to use "
        r"uninitialized value w; first run GlobalVariablesInitializer\(\), made after the last variable, or "
        r"restore a checkpoint\n\t \[\[\{\{node w/read\}\}\]\]",
}


def lines_of_mistakes():
    """{function: the line that says `here`}"""
    lines, function = {}, None
    for number, line in enumerate(outside_project.read(FOLDER, "mistakes.cc").splitlines(), 1):
        if begin := re.match(r"(?:void|Status) (\w+)\(.*\{$", line):
            function = begin.group(1)
        if line.endswith("// here"):
            assert function not in lines, f"{function} has two"
            lines[function] = number
    return lines


def check(program, name, pattern, code=1):
    done = tenon_process.run(program, name)
    assert done.returncode == code, f"exit code {done.returncode}:\n{done.stderr}"
    assert re.fullmatch(pattern + "\n", done.stderr), f"found  {done.stderr}wanted {pattern}"


def registered_twice(program):
    done = tenon_process.run(program, "RegisteredTwice")
    assert done.returncode == 0 and done.stderr == "", done


def nothing_forgotten(program):
    made = set(tenon_process.run(program).stdout.splitlines())
    listed = {*BUILDING, *RUNNING, "NoGraph", "RegisteredTwice"}
    assert made == listed, made ^ listed


def cases(program):
    lines = lines_of_mistakes()
    for name, message in BUILDING.items():
        code = "NOT_FOUND" if name == "UnknownOp" else "INVALID_ARGUMENT"
        pattern = rf"{code}: mistakes\.cc:{lines[name]}: {message}"
        yield name, lambda name=name, pattern=pattern: check(program, name, pattern)
    for name, pattern in RUNNING.items():
        yield name, lambda name=name, pattern=pattern: check(program, name, pattern)
    yield "NoGraph", lambda: check(
        program, "NoGraph", rf"mistakes\.cc:{lines['NoGraph']}: no graph is being built: enter one "
        "with GraphBuilding", -signal.SIGABRT)
    yield "RegisteredTwice", lambda: registered_twice(program)
    yield "nothing is forgotten", lambda: nothing_forgotten(program)


def main():
    with tempfile.TemporaryDirectory() as folder:
        names = os.listdir(os.path.join(outside_project.SOURCE, FOLDER))
        files = {name: outside_project.read(FOLDER, name) for name in names}
        programs = outside_project.build(folder, files)
        return tenon_process.main(list(cases(os.path.join(programs, "mistakes"))))


if __name__ == "__main__":
    sys.exit(main())
