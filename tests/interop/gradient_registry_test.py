#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ops that have a gradient are those of TensorFlow's gradient registry.

For every op of `tenon ops --json`: a gradient here and there, declared not differentiable here and
there, or unknown here and there. Exceptions are named below with their reason.
"""
import json
import subprocess

from tensorflow_environment import TENON, main_with_tensorflow

IN_LOOPS = "the gradient is that of the loop as a whole"
OF_FIRST_NAMES = "as the op of the same name without Batch; TensorFlow has no gradients under first names"
AS_OTHERS = "as those in one and two dimensions, which have one"
MAKES_LISTS = "TensorFlow says nothing of it, and no number goes into it"
NO_GRADIENT_ASKED = "TensorFlow says nothing of it, and its integers never have a gradient"
NOT_THROUGH_OPTIONALS = "values that come out of datasets have no gradients here"
OF_OTHER_HANDLES = "TensorFlow's function makes ops of the third version, which do not take these handles"
BY_THE_RUNTIME = "made by the runtime, after gradients"

# op -> (TensorFlow's answer, ours, reason)
EXCEPTIONS = {
    "Enter": ("yes", "unknown", IN_LOOPS),
    "Exit": ("yes", "unknown", IN_LOOPS),
    "NextIteration": ("yes", "unknown", IN_LOOPS),
    "RefEnter": ("yes", "unknown", IN_LOOPS),
    "RefExit": ("yes", "unknown", IN_LOOPS),
    "RefNextIteration": ("yes", "unknown", IN_LOOPS),
    "LoopCond": ("yes", "none", "TensorFlow's function cannot be called; a condition has none"),
    "MaxPoolGradGradV2": ("unknown", "yes", "as that of MaxPoolGradGrad; TensorFlow has none"),
    "RandomUniformInt": ("unknown", "none", NO_GRADIENT_ASKED),
    "OptionalFromValue": ("yes", "unknown", NOT_THROUGH_OPTIONALS),
    "OptionalGetValue": ("yes", "unknown", NOT_THROUGH_OPTIONALS),
    "QuantizeAndDequantizeV4Grad": ("yes", "unknown", "TensorFlow's function takes one gradient of three"),
    **{"TensorArray" + name + version: ("yes", "unknown", OF_OTHER_HANDLES)
       for name in ("Concat", "Gather", "Read", "Scatter", "Split", "Write") for version in ("", "V2")},
    **{"Batch" + name: ("unknown", "yes", OF_FIRST_NAMES) for name in (
        "MatrixBandPart", "MatrixDeterminant", "MatrixDiag", "MatrixDiagPart", "MatrixInverse", "MatrixSetDiag",
        "MatrixSolve", "MatrixSolveLs", "MatrixTriangularSolve", "SelfAdjointEigV2", "Svd")},
    "RFFT3D": ("unknown", "yes", AS_OTHERS),
    "IRFFT3D": ("unknown", "yes", AS_OTHERS),
    "EmptyTensorList": ("unknown", "none", MAKES_LISTS),
    "TensorListReserve": ("unknown", "none", MAKES_LISTS),
    "_Arg": ("unknown", "none", BY_THE_RUNTIME),
    "_Retval": ("unknown", "none", BY_THE_RUNTIME),
}

# A gradient function of TensorFlow that gives None whatever it is asked says what NotDifferentiable
# says. The test calls these to see that they do: op -> dtypes of its inputs.
GIVES_NONE = {
    "ArgMax": ("float", "int32"),
    "ArgMin": ("float", "int32"),
    "Ceil": ("float",),
    "Floor": ("float",),
    "FloorDiv": ("float", "float"),
    "Rint": ("float",),
    "Round": ("float",),
    "TruncateDiv": ("float", "float"),
}


def answer_of_tensorflow(name):
    import tensorflow.compat.v1 as tf
    from tensorflow.python.framework import ops
    try:
        function = ops.gradient_registry.lookup(name)
    except LookupError:
        return "unknown"
    if function is None:
        return "none"
    if name in GIVES_NONE:
        with tf.Graph().as_default() as graph:
            inputs = [tf.placeholder(t, []) for t in GIVES_NONE[name]]
            op = graph.create_op(name, inputs)
            gradients = function(op, *[tf.zeros([]) for _ in op.outputs])
        gradients = gradients if isinstance(gradients, (list, tuple)) else [gradients]
        if all(g is None for g in gradients):
            return "none"
    return "yes"


def main():
    listed = json.loads(subprocess.run([TENON, "ops", "--json"], check=True, capture_output=True,
                                       text=True).stdout)
    listed = [op for op in listed
              if op["kernels"] or op["name"] in EXCEPTIONS or op["name"] in GIVES_NONE]
    failed, counts = 0, {}
    # TensorFlow does not know the ops of tables and linear models, nor Horovod's.
    listed = [op for op in listed if not op["name"].startswith(("Tenon", "Horovod"))]
    for op in listed:
        name, ours, wanted = op["name"], op["gradient"], answer_of_tensorflow(op["name"])
        counts[ours] = counts.get(ours, 0) + 1
        exception = EXCEPTIONS.get(name)
        if exception:
            right = exception[:2] == (wanted, ours)
        else:
            right = wanted == ours
        if not right:
            failed += 1
            print(f"FAILED: the gradient of {name} is {ours!r} and TensorFlow's {wanted!r}"
                  + (", not as the exception says" if exception else ""))
    unknown = set(EXCEPTIONS) | set(GIVES_NONE)
    for name in sorted(unknown - {op["name"] for op in listed}):
        failed += 1
        print(f"FAILED: {name} is in a table and not an op")
    print(f"compared the gradients of {len(listed)} ops ({counts}), "
          f"with {len(EXCEPTIONS)} named exceptions")
    return 1 if failed else 0


if __name__ == "__main__":
    main_with_tensorflow(main)
