#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in PyTorch what `tenon bench --device gpu --output FILE.json` has measured, eagerly and as CUDA graphs, and
prints both beside it.

Usage: gpu_timing_torch.py FILE.json

A ratio above 1 says that Tenon is the faster. As there, a step ends with a value on the host, batches come from
pageable memory of the host, floats are not rounded to TF32, and times are medians.
"""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

DEVICE = "cuda:0"


def median_seconds(run, most=1000):
    """The median of the seconds that `run` takes and the GPU needs, after some that nobody counts."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    seconds = []
    end = time.perf_counter() + 1
    while len(seconds) < most and (time.perf_counter() < end or len(seconds) < 3):
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def as_graph(step):
    """A function that replays the work of `step` on the GPU."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()
    return graph, result


class Row:
    """`copy_in` is what a step does before its work on the GPU, `step` that work; its result goes to the host."""

    def __init__(self, step, copy_in=lambda: None, figure=lambda seconds: seconds * 1e3):
        self.step, self.copy_in, self.figure = step, copy_in, figure

    def eager(self):
        def run():
            self.copy_in()
            self.step().cpu()
        return self.figure(median_seconds(run))

    def graph(self):
        graph, result = as_graph(self.step)

        def run():
            self.copy_in()
            graph.replay()
            result.cpu()
        return self.figure(median_seconds(run))


def mnist(batch):
    host_images = (torch.arange(batch * 784) % 97).float().reshape(batch, 784)
    host_labels = F.one_hot(torch.arange(batch) % 10, 10).float()
    images, labels = host_images.to(DEVICE), host_labels.to(DEVICE)
    shapes = [(784, 100), (100,), (100, 10), (10,)]
    w1, b1, w2, b2 = weights = [torch.randn(s, device=DEVICE, requires_grad=True) for s in shapes]

    def step():
        y = torch.softmax(torch.sigmoid(images @ w1 + b1) @ w2 + b2, 1)
        loss = -(labels * torch.log(y)).sum(1).mean()
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients):
                weight -= 0.001 * gradient
        return loss.detach()

    def copy_in():
        images.copy_(host_images)
        labels.copy_(host_labels)
    return Row(step, copy_in, lambda seconds: seconds * 1e6)


def product(n, repeats=4):
    a, b = torch.randn(n, n, device=DEVICE), torch.randn(n, n, device=DEVICE)

    def step():
        y = a
        for _ in range(repeats):
            y = y @ b
        return y[:1, :1].clone()
    return Row(step, figure=lambda seconds: 2 * n**3 * repeats / seconds / 1e12)


def copy(mebibytes, into):
    host = torch.ones(mebibytes << 18)
    device = host.to(DEVICE)
    figure = lambda seconds: device.numel() * 4 / seconds / 1e9  # noqa: E731
    if into:
        return Row(lambda: device[:1].clone(), lambda: device.copy_(host), figure)
    return Row(lambda: device, figure=figure)


def images(requires_grad=True):
    x = torch.rand(32, 32, 28, 28, device=DEVICE).to(memory_format=torch.channels_last)
    return x.requires_grad_(requires_grad)


def first(tensors):
    return torch.stack([t.reshape(-1)[0] for t in tensors])


def gradients_of(output, inputs):
    return first(torch.autograd.grad((output * output).sum() / 2, inputs))


def convolution():
    x = images()
    w = torch.rand(64, 32, 3, 3, device=DEVICE, requires_grad=True)
    return Row(lambda: gradients_of(F.relu(F.conv2d(x, w, padding=1)), [x, w]))


def max_pooling():
    x = images()
    return Row(lambda: gradients_of(F.max_pool2d(x, 2), [x]))


def batch_norm():
    x = images()
    scale = torch.rand(32, device=DEVICE, requires_grad=True)
    offset = torch.rand(32, device=DEVICE, requires_grad=True)
    return Row(lambda: gradients_of(F.batch_norm(x, None, None, scale, offset, True), [x, scale, offset]))


def top_k():
    x = torch.rand(64, 50000, device=DEVICE)
    return Row(lambda: first(torch.topk(x, 100)))


ROWS = {
    "gpu_mnist_100": lambda: mnist(100),
    "gpu_mnist_4096": lambda: mnist(4096),
    "gpu_product_4096": lambda: product(4096),
    "gpu_copy_in": lambda: copy(64, True),
    "gpu_copy_out": lambda: copy(64, False),
    "convolution": convolution,
    "max_pooling": max_pooling,
    "batch_norm": batch_norm,
    "top_k": top_k,
}


def measured(measure):
    """The figure as text, or the error's first line where PyTorch cannot do it, and the figure."""
    try:
        value = measure()
        return f"{value:.4g}", value
    except RuntimeError as error:
        return str(error).splitlines()[0][:40], None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    with open(sys.argv[1], encoding="utf-8") as file:
        table = json.load(file)
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name(0)}")
    print(f"{'row':<52} {'tenon':>10} {'eager':>10} {'ratio':>7} {'graph':>10} {'ratio':>7}")
    for row in table:
        if row["row"] not in ROWS:
            continue
        texts = []
        made = ROWS[row["row"]]()
        for measure in (made.eager, made.graph):
            text, value = measured(measure)
            ratio = "-"
            if value:
                more_is_better = row["unit"] in ("GB/s", "TFLOP/s")
                ratio = f"{row['tenon'] / value if more_is_better else value / row['tenon']:.2f}x"
            texts += [f"{text:>10}", f"{ratio:>7}"]
        print(f"{row['what'] + ', ' + row['unit']:<52} {row['tenon']:>10.4g} {' '.join(texts)}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
