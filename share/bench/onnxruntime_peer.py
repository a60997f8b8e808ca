#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's side of `tenon bench --peer onnxruntime`: inference.

Prints its name, then reads the name of a row from each line of standard input and answers with a figure, measured as
the row of that name is for Tenon, or with "none". `--install` makes its Python environment.
"""
import peer_environment

VERSION = "1.20.1"
peer_environment.install_if_asked(f"onnxruntime-{VERSION}",
                                  [f"onnxruntime=={VERSION}", "onnx==1.17.0", "numpy<2.3", "protobuf<6"])

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, checker, helper, numpy_helper  # noqa: E402

from peer_batches import frozen_network, median_call, mnist_batch, time_calls  # noqa: E402


def model():
    """The network of frozen_network, with channels before pixels, as ONNX has them."""
    nodes, constants, last = [], [], "images"

    def constant(name, values):
        constants.append(numpy_helper.from_array(values, name))
        return name

    def add(op, *inputs, **attributes):
        nonlocal last
        name = f"{op}_{len(nodes)}"
        nodes.append(helper.make_node(op, [last, *inputs], [name], **attributes))
        last = name

    def reshape(name, *shape):
        add("Reshape", constant(name, np.array(shape, "int64")))

    (filters_1, bias_1), (filters_2, bias_2), (dense_1, bias_3), (dense_2, bias_4) = frozen_network()
    reshape("image", -1, 1, 28, 28)
    for i, (filters, bias) in enumerate([(filters_1, bias_1), (filters_2, bias_2)]):
        add("Conv", constant(f"filters_{i}", filters.transpose(3, 2, 0, 1).copy()), constant(f"bias_{i}", bias),
            kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        add("Relu")
        add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    reshape("flat", -1, 7 * 7 * 64)
    # The pixels of a channel are together now.
    dense_1 = dense_1.reshape(7, 7, 64, 128).transpose(2, 0, 1, 3).reshape(-1, 128)
    add("Gemm", constant("dense_1", dense_1), constant("bias_3", bias_3))
    add("Relu")
    add("Gemm", constant("dense_2", dense_2), constant("bias_4", bias_4))
    add("Softmax", axis=1)
    graph = helper.make_graph(
        nodes, "mnist", [helper.make_tensor_value_info("images", TensorProto.FLOAT, [None, 784])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, [None, 10])], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    checker.check_model(made)
    return made.SerializeToString()


def session():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(model(), options, providers=["CPUExecutionProvider"])


def inference(batch, steps):
    """Microseconds of a run on one thread."""
    network, feed = session(), {"images": mnist_batch(batch)[0]}
    time_calls(20, lambda: network.run(None, feed))
    return median_call(steps, lambda: network.run(None, feed)) * 1e6


ROWS = {
    "inference_1": lambda: inference(1, 1000),
    "inference_100": lambda: inference(100, 100),
}


def main():
    peer_environment.answer(f"ONNX Runtime {onnxruntime.__version__}", lambda row: ROWS[row]() if row in ROWS else None)


if __name__ == "__main__":
    main()
