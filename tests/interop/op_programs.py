# SPDX-License-Identifier: Apache-2.0
"""Small graphs for the ops that make no sense alone: control flow, stacks, tensor arrays, files.

Each program builds a graph and returns steps: lists of fetches, which are run in one session in order,
here and there. The ops that it covers are those of its graph.
"""
import tensorflow.compat.v1 as tf

from op_programs_models import MODEL_OPS, MODEL_PROGRAMS
from op_programs_random import RANDOM_PROGRAMS
from op_programs_stores import STORE_OPS, STORE_PROGRAMS
from op_programs_tables import TABLE_PROGRAMS

raw = tf.raw_ops


def create(op, *inputs, dtypes=None, **attrs):
    from op_comparison import attr_value
    node = tf.get_default_graph().create_op(op, list(inputs), name=op.strip("_"),
                                            attrs={k: attr_value(v) for k, v in attrs.items()})
    return node.outputs[0] if len(node.outputs) == 1 else node.outputs or node


def branches(_):
    data = tf.placeholder_with_default([1.5, -0.0, float("nan")], [3])
    steps = []
    for pred in (True, False):
        p = tf.placeholder_with_default(pred, [])
        off, on = raw.Switch(data=data, pred=p)
        merged, index = raw.Merge(inputs=[raw.Neg(x=off), raw.Identity(input=on)])
        with tf.control_dependencies([off]):
            trigger = raw.ControlTrigger()
        with tf.control_dependencies([trigger, raw.NoOp()]):
            done = tf.constant(1)
        steps.append([merged, index, done])
    for chosen in (0, 1, 2, 3, -1):
        outputs = create("_SwitchN", data, tf.placeholder_with_default(chosen, []), T=tf.float32, num_outs=3)
        steps.append(list(raw.Merge(inputs=[o + float(i) for i, o in enumerate(outputs)])))
    steps.append([create("_SwitchN", data, tf.placeholder_with_default([1], None), T=tf.float32, num_outs=2)[0]])
    steps.append([tf.cond(tf.less(data[0], 2.0), lambda: data * 2.0, lambda: data)])
    return steps


def loops(_):
    i, total = tf.while_loop(lambda i, t: i < 7, lambda i, t: (i + 1, t * 1.5 + tf.cast(i, tf.float32)),
                             [tf.constant(0), tf.constant(1.0)], parallel_iterations=3)
    empty = tf.while_loop(lambda i: i < 0, lambda i: i + 1, [tf.constant(3)])
    rows = tf.while_loop(lambda i, x: i < 3,
                         lambda i, x: (i + 1, tf.concat([x, x[:1]], 0)), [tf.constant(0), tf.ones([1, 2])],
                         shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])])
    x = tf.constant([1.0, 2.0])
    y = tf.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, v * v * 0.5), [tf.constant(0), x])[1]
    return [[i, total], [empty], list(rows), tf.gradients(y, x)]


def reference_flow(_):
    v = raw.VariableV2(shape=[2], dtype=tf.float32, shared_name="flow")
    start = raw.Assign(ref=v, value=[1.0, 2.0])
    off, on = create("RefSwitch", v, tf.constant(True), T=tf.float32)
    merged, index = create("RefMerge", off, on, T=tf.float32, N=2)
    counted = raw.AssignAdd(ref=merged, value=[10.0, 10.0])
    entered = create("RefEnter", v, T=tf.float32, frame_name="reference", is_constant=False,
                     parallel_iterations=10)
    # One iteration, whose back edge carries nothing on.
    around, _ = create("RefMerge", entered, entered, T=tf.float32, N=2)
    stop, go = create("RefSwitch", around, create("LoopCond", raw.Less(x=raw.Sum(
        input=around, axis=[0]), y=raw.Enter(data=0.0, frame_name="reference"))), T=tf.float32)
    back = create("RefNextIteration", go, T=tf.float32)
    around.op._update_input(1, back)
    return [[start.op], [counted, index], [v], [create("RefExit", stop, T=tf.float32)]]


def stacks(_):
    stack = raw.StackV2(max_size=-1, elem_type=tf.float32)
    first = raw.StackPushV2(handle=stack, elem=[1.0, 2.0])
    with tf.control_dependencies([first]):
        second = raw.StackPushV2(handle=stack, elem=[[3.0]])
    with tf.control_dependencies([second]):
        popped = raw.StackPopV2(handle=stack, elem_type=tf.float32)
    with tf.control_dependencies([popped]):
        last = raw.StackPopV2(handle=stack, elem_type=tf.float32)
    with tf.control_dependencies([last]):
        closed = raw.StackCloseV2(handle=stack)
    old = create("Stack", elem_type=tf.float32, stack_name="old")
    with tf.control_dependencies([create("StackPush", old, tf.constant([1.0, 2.0]), T=tf.float32, swap_memory=False)]):
        old_popped = create("StackPop", old, elem_type=tf.float32)
    with tf.control_dependencies([old_popped]):
        old_closed = create("StackClose", old)
    empty = raw.StackV2(max_size=1, elem_type=tf.int32)
    full = raw.StackV2(max_size=1, elem_type=tf.int32)
    with tf.control_dependencies([raw.StackPushV2(handle=full, elem=1)]):
        too_many = raw.StackPushV2(handle=full, elem=2)
    return [[first, second, popped, last, closed], [old_popped, old_closed],
            [raw.StackPopV2(handle=empty, elem_type=tf.int32)], [too_many]]


def tensor_arrays(_):
    def array(size=3, **attrs):
        return raw.TensorArrayV3(size=size, dtype=tf.float32, **attrs)
    handle, flow = array()
    for i in range(3):
        flow = raw.TensorArrayWriteV3(handle=handle, index=i, value=[i + 0.5, -1.0], flow_in=flow)
    rows = raw.TensorArrayGatherV3(handle=handle, indices=[2, 0, 1], flow_in=flow, dtype=tf.float32)
    with tf.control_dependencies([rows]):
        closed = raw.TensorArrayCloseV3(handle=handle)
    h2, f2 = array(2, clear_after_read=False)
    f2 = raw.TensorArrayScatterV3(handle=h2, indices=[1, 0], value=[[1.0], [2.0]], flow_in=f2)
    read = raw.TensorArrayReadV3(handle=h2, index=0, flow_in=f2, dtype=tf.float32)
    h3, f3 = array(2, dynamic_size=True)
    f3 = raw.TensorArraySplitV3(handle=h3, value=[1.0, 2.0, 3.0], lengths=tf.constant([1, 2], tf.int64), flow_in=f3)
    joined = raw.TensorArrayConcatV3(handle=h3, flow_in=f3, dtype=tf.float32)
    h4, f4 = array(2)
    missing = raw.TensorArrayReadV3(handle=h4, index=1, flow_in=f4, dtype=tf.float32)
    beyond = raw.TensorArrayWriteV3(handle=h4, index=2, value=1.0, flow_in=f4)
    f5 = raw.TensorArrayWriteV3(handle=h4, index=0, value=1.0, flow_in=f4)
    twice = raw.TensorArrayWriteV3(handle=h4, index=0, value=1.0, flow_in=f5)
    gradient, gradient_flow = raw.TensorArrayGradV3(handle=h2, flow_in=f2, source="gradients")
    gradient_flow = raw.TensorArrayWriteV3(handle=gradient, index=0, value=[5.0], flow_in=gradient_flow)
    gradient_flow = raw.TensorArrayWriteV3(handle=gradient, index=0, value=[7.0], flow_in=gradient_flow)
    summed = raw.TensorArrayReadV3(handle=gradient, index=0, flow_in=gradient_flow, dtype=tf.float32)
    return [[rows, closed], [read, raw.TensorArraySizeV3(handle=h2, flow_in=f2)], list(joined), [missing],
            [beyond], [twice], [summed]]


def tensor_lists(_):
    of, none = {"element_dtype": tf.float32}, tf.constant([], tf.int32)

    def unknown(value):
        """So that TensorFlow's client finds no mistake before the kernels do."""
        return tf.placeholder_with_default(value, None)

    def stack(handle, shape=-1, **attrs):
        return raw.TensorListStack(input_handle=handle, element_shape=unknown(shape), **of, **attrs)

    rows = raw.TensorListFromTensor(tensor=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], element_shape=[2])
    pushed = raw.TensorListPushBack(input_handle=rows, tensor=[7.0, 8.0])
    popped, last = raw.TensorListPopBack(input_handle=pushed, element_shape=-1, **of)
    holes = raw.TensorListReserve(element_shape=[-1], num_elements=3, **of)
    set_one = raw.TensorListSetItem(input_handle=holes, index=1, item=[9.0, 10.0])
    grown = raw.TensorListSetItem(input_handle=rows, index=4, item=[0.5, 0.5],
                                  resize_if_index_out_of_bounds=True)
    empty = raw.EmptyTensorList(element_shape=[2], max_num_elements=1, **of)
    full = raw.TensorListPushBack(input_handle=empty, tensor=[1.0, 1.0])
    parts = raw.TensorListSplit(tensor=[[1.0], [2.0], [3.0]], element_shape=[-1, 1],
                                lengths=tf.constant([2, 1], tf.int64))
    scattered = raw.TensorListScatter(tensor=[1.0, 2.0, 3.0], indices=[3, 0, 3], element_shape=none)
    sized = raw.TensorListScatterV2(tensor=[1.0, 2.0], indices=[3, 0], element_shape=none, num_elements=6)
    into = raw.TensorListScatterIntoExistingList(input_handle=rows, tensor=[[0.0, 1.0], [2.0, 3.0]],
                                                 indices=[3, 0])
    both = raw.TensorListConcatLists(input_a=rows, input_b=into, **of)
    batch = raw.TensorListPushBackBatch(input_handles=tf.stack([empty, rows]), tensor=[[1.0, 2.0], [3.0, 4.0]])
    of_lists = raw.TensorListPushBack(tensor=rows, input_handle=raw.EmptyTensorList(
        element_shape=none, max_num_elements=-1, element_dtype=tf.variant))
    inner = raw.TensorListGetItem(input_handle=of_lists, index=0, element_shape=none, element_dtype=tf.variant)

    rows, holes, set_one, empty, full, parts = map(unknown, (rows, holes, set_one, empty, full, parts))

    def concat(handle, shape=-1, leading=()):
        return list(raw.TensorListConcatV2(input_handle=handle, element_shape=unknown(shape),
                                           leading_dims=tf.constant(leading, tf.int64), **of))

    def gather(handle, indices, shape=-1):
        return [raw.TensorListGather(input_handle=handle, indices=indices, element_shape=unknown(shape), **of)]

    def get(handle, index, shape=-1):
        return [raw.TensorListGetItem(input_handle=handle, index=index, element_shape=unknown(shape), **of)]

    shapes = [raw.TensorListElementShape(input_handle=h, shape_type=tf.int64)
              for h in (rows, holes, raw.EmptyTensorList(element_shape=-1, max_num_elements=-1, **of))]
    lengths = [raw.TensorListLength(input_handle=h) for h in (rows, pushed, popped, holes, grown, empty)]
    sums = [stack(raw.AddN(inputs=[h, rows])) for h in (rows, raw.ZerosLike(x=rows), set_one)]
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    total = stack(raw.TensorListPushBack(input_handle=raw.TensorListFromTensor(tensor=x, element_shape=[2]),
                                         tensor=x[0] * x[1]))
    return [[stack(h) for h in (rows, pushed, popped, set_one, grown, sized, into, both, inner)] + [last],
            shapes, lengths, sums, tf.gradients(total * total, x), concat(parts), concat(rows),
            list(raw.TensorListConcat(input_handle=parts, element_shape=[None, 1], **of)),
            concat(set_one, leading=[1]), concat(set_one), concat(holes), concat(holes, [2]),
            [raw.TensorListConcat(input_handle=holes, **of).tensor], concat(empty, [0]), concat(empty),
            gather(rows, [2, 0, 0]), gather(set_one, [0, 1]), gather(holes, [0]), gather(holes, [0], [3]),
            gather(rows, none), gather(holes, none), gather(holes, [3]), get(set_one, 0), get(holes, 0),
            get(holes, 0, [1]), get(rows, 3), get(rows, 1, [3]), [stack(rows, num_elements=2)],
            [stack(rows, [3])], [stack(holes)], [stack(holes, [2])], [stack(empty)], [stack(scattered, none)],
            [stack(raw.TensorListResize(input_handle=rows, size=n)) for n in (0, 2, 5)],
            [raw.TensorListLength(input_handle=raw.TensorListResize(input_handle=rows, size=-1))],
            [raw.TensorListLength(input_handle=h) for h in tf.unstack(batch, 2)],
            [raw.TensorListLength(input_handle=raw.TensorListPushBack(input_handle=full, tensor=[1.0, 1.0]))],
            [raw.TensorListLength(input_handle=raw.TensorListPushBack(input_handle=rows, tensor=[1.0]))],
            [raw.TensorListPopBack(input_handle=empty, element_shape=-1, **of)[1]],
            [raw.TensorListLength(input_handle=raw.TensorListReserve(element_shape=-1, num_elements=-1, **of))],
            [raw.TensorListLength(input_handle=raw.TensorListScatterV2(
                tensor=[1.0], indices=[3], element_shape=none, num_elements=3))],
            [raw.TensorListLength(input_handle=raw.TensorListScatter(
                tensor=[1.0], indices=[-1], element_shape=none))],
            [stack(raw.TensorListSetItem(input_handle=rows, index=3, item=[1.0, 1.0]))]]


def inputs(_):
    unfed = tf.placeholder(tf.float32, [2])
    return [[raw.PlaceholderWithDefault(input=[1, 2], shape=[2]), raw.Const(
        value=tf.make_tensor_proto([1.0, float("nan")]), dtype=tf.float32)], [unfed],
            [tf.constant(v) for v in (True, b"x", 1.5, [[1], [2]], 3 + 4j)]]


def variables(_):
    v = raw.VariableV2(shape=[2], dtype=tf.float32, shared_name="v")
    old = create("Variable", shape=tf.TensorShape([2]), dtype=tf.float32, shared_name="old")
    r = raw.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="r")
    read = raw.ReadVariableOp(resource=r, dtype=tf.float32)
    set_all = [raw.Assign(ref=v, value=[1.0, 2.0]).op, raw.Assign(ref=old, value=[3.0, 4.0]).op,
               raw.AssignVariableOp(resource=r, value=[5.0, 6.0])]
    flags = [raw.IsVariableInitialized(ref=v), raw.VarIsInitializedOp(resource=r)]
    values = [v, old, read]
    return [flags, [v], [read], set_all, flags, values, [raw.VariableShape(input=r)],
            [raw.DestroyResourceOp(resource=r, ignore_lookup_error=False)], [read], flags,
            [raw.DestroyResourceOp(resource=r, ignore_lookup_error=False)],
            [raw.DestroyResourceOp(resource=r, ignore_lookup_error=True)]]


def steps_of_one_variable_as_two(_):
    """Optimizers that are given the same variable twice."""
    v = raw.VariableV2(shape=[3], dtype=tf.float32, shared_name="twice")
    w = raw.VariableV2(shape=[3], dtype=tf.float32, shared_name="other")
    r = raw.VarHandleOp(dtype=tf.float32, shape=[3], shared_name="twice")
    read = raw.ReadVariableOp(resource=r, dtype=tf.float32)
    start = [raw.Assign(ref=v, value=[1.0, 2.0, 4.0]).op, raw.Assign(ref=w, value=[0.5, 0.7, 0.9]).op,
             raw.AssignVariableOp(resource=r, value=[1.0, 2.0, 4.0])]
    scalars, rows = dict(lr=0.5, grad=[1.0, -1.0, 2.0], momentum=0.25), [2, 0, 2]
    return [start, [raw.ApplyMomentum(var=v, accum=v, **scalars).op], [v],
            [raw.ResourceApplyMomentum(var=r, accum=r, **scalars)], [read],
            [raw.SparseApplyMomentum(var=v, accum=v, indices=rows, **scalars).op], [v],
            [raw.ResourceSparseApplyMomentum(var=r, accum=r, indices=rows, **scalars)], [read], start,
            [raw.ApplyRMSProp(var=v, ms=w, mom=v, rho=0.9, epsilon=0.01, **scalars).op], [v, w],
            [raw.ApplyAdadelta(var=v, accum=v, accum_update=w, lr=0.5, rho=0.9, epsilon=0.01,
                               grad=scalars["grad"]).op], [v, w]]


def messages(_):
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    steps = [[raw.Print(input=x, data=[x], message="printed", first_n=1)],
             [raw.PrintV2(input="printed", output_stream="stderr")]]
    for right in (True, False):
        steps.append([raw.Assert(condition=right, data=[x, b"why"], summarize=2)])
    return steps


def files(folder):
    name = f"{folder}/text"
    written = raw.WriteFile(filename=name, contents=b"some\x00bytes")
    values = [tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([b"a", b""]), tf.constant(7, tf.int64)]
    names, slices = ["w", "s", "n"], ["", "", ""]
    prefix = f"{folder}/part/model"
    saved = raw.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=slices, tensors=values)
    parts = raw.SaveV2(prefix=f"{folder}/part/slice", tensor_names=["w"], shape_and_slices=["4 2 2,2:0,2"],
                       tensors=[values[0]])
    merged = raw.MergeV2Checkpoints(checkpoint_prefixes=[prefix], destination_prefix=f"{folder}/all")

    def restored(what, kinds, part=None, at=f"{folder}/all"):
        return list(raw.RestoreV2(prefix=at, tensor_names=what, shape_and_slices=part or [""] * len(what),
                                  dtypes=kinds))
    return [[written], [raw.ReadFile(filename=name)], [raw.ReadFile(filename=name + "-not-there")],
            [saved, parts], [merged], restored(names, [tf.float32, tf.string, tf.int64]),
            restored(["w"], [tf.float32], ["2 2 0,1:-"]), restored(["w"], [tf.float64]),
            restored(["nothing"], [tf.float32]),
            restored(["w"], [tf.float32], ["4 2 2,1:0,2"], f"{folder}/part/slice"),
            restored(["w"], [tf.float32], at=f"{folder}/not-there")]


def maps_of_sparse_tensors(_):
    entries = {"sparse_indices": [[0, 0], [0, 2], [1, 1]], "sparse_values": [1.5, -0.0, 3.0]}
    many = raw.AddManySparseToTensorsMap(**entries, sparse_shape=[3, 4], shared_name="many")
    one = raw.AddSparseToTensorsMap(**entries, sparse_shape=[2, 3], shared_name="one")
    take = raw.TakeManySparseFromTensorsMap
    all_of_many = take(sparse_handles=many, dtype=tf.float32, shared_name="many")
    back = take(sparse_handles=[2, 3], dtype=tf.float32, shared_name="one")
    wrong = take(sparse_handles=[0], dtype=tf.int32, shared_name="one")
    return [list(all_of_many), [one], [one], [one], [one], list(back), list(back), list(wrong)]


def decompositions(_):
    """Sizes, and the matrices put together again: signs are left open."""
    matrices = [tf.constant(m, tf.float64) for m in (
        [[4.0, 1.0, -1.0], [1.0, 3.0, 0.5], [-1.0, 0.5, 2.0]], [[[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 3.0]]])]
    tall = tf.constant([[1.0, 2.0], [3.0, -1.0], [0.5, 1.0]], tf.float64)
    steps = []
    for m in matrices:
        complex_m = tf.complex(m, tf.linalg.band_part(m, 0, -1) - tf.linalg.band_part(m, -1, 0))
        for x in (m, tf.cast(m, tf.float32), complex_m):
            e, v = raw.SelfAdjointEigV2(input=x)
            e2, v2 = raw.Eig(input=x, Tout=tf.complex64 if x.dtype == tf.float32 else tf.complex128)
            order = tf.argsort(tf.math.real(e2), axis=-1)
            steps.append([e, tf.matmul(v * e[..., None, :], v, adjoint_b=True),
                          tf.gather(tf.math.real(e2), order, batch_dims=len(e2.shape) - 1), tf.cast(tf.shape(v2), tf.float32),
                          tf.matmul(tf.cast(x, e2.dtype), v2) - v2 * e2[..., None, :]])
    for x in matrices + [tall, tf.transpose(tall), tf.cast(tall, tf.complex64)]:
        for full in (False, True):
            s, u, v = raw.Svd(input=x, full_matrices=full)
            p = tf.shape(s)[-1]
            steps.append([tf.shape(u), tf.shape(v), s, tf.matmul(u, u, adjoint_a=True), tf.matmul(v, v, adjoint_a=True),
                          tf.matmul(u[..., :p] * s[..., None, :], v[..., :p], adjoint_b=True)])
    steps.append(list(raw.Eig(input=matrices[0], compute_v=False, Tout=tf.complex128))[:1])
    for op in (raw.Svd, raw.SelfAdjointEigV2):
        steps.append([tf.shape(t) for t in op(input=tf.zeros([2, 0, 0]))])
    steps.append([raw.SelfAdjointEigV2(input=[[float("nan"), 0.0], [0.0, 1.0]])[0]])
    steps.append([raw.Eig(input=[[float("nan"), 0.0], [0.0, 1.0]], Tout=tf.complex64)[0]])
    steps.append(list(raw.Svd(input=[[float("nan"), 0.0], [0.0, 1.0]])))
    return steps


def gradients_of_matrices(_):
    """TensorFlow's gradients, of kernels here and there."""
    a = tf.constant([[4.0, 1.0, -1.0], [1.0, 3.0, 0.5], [-1.0, 0.5, 2.0]], tf.float64)
    b = tf.constant([[1.0, 2.0], [3.0, -1.0], [0.5, 1.0]], tf.float64)
    x = tf.constant([[1.0, -2.0, 0.5, 3.0]], tf.float64)
    ys = [tf.linalg.cholesky(a), tf.linalg.inv(a), tf.linalg.det(a), tf.linalg.logdet(a), tf.linalg.solve(a, b),
          tf.linalg.lstsq(a, b, l2_regularizer=0.5), tf.linalg.triangular_solve(a, b), tf.linalg.sqrtm(a),
          tf.linalg.eigh(a)[0], tf.linalg.svd(a, compute_uv=False), tf.einsum("ij,jk->ki", a, b)]
    spectra = [tf.signal.rfft(x), tf.signal.rfft2d(x), tf.signal.fft(tf.cast(x, tf.complex128))]
    return [[y * y, *tf.gradients(y * y, a)] for y in ys] + [
        [*tf.gradients(tf.abs(y), x)] for y in spectra]


def fused(_):
    a = tf.constant([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])
    b = tf.constant([[1.0, 2.0], [-3.0, 4.0], [0.5, -0.5]])
    bias = tf.constant([0.25, -1.0])
    return [[create("_FusedMatMul", a, b, bias, T=tf.float32, num_args=1, fused_ops=[b"BiasAdd"] + more)]
            for more in ([], [b"Relu"], [b"Relu6"], [b"Elu"])]


def old_checkpoints(folder):
    values = [tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([b"a", b""]), tf.constant(7, tf.int64)]
    name = f"{folder}/old"
    kinds = [tf.constant(list(range(3)), t) for t in (tf.int8, tf.uint8, tf.int16, tf.float64, tf.complex64, tf.half)]
    saved = [raw.Save(filename=name, tensor_names=["w", "s", "n"], data=values),
             raw.Save(filename=f"{folder}/kinds", tensor_names=[t.dtype.name for t in kinds], data=kinds)]
    parts = [raw.SaveSlices(filename=f"{folder}/part-{i}", tensor_names=["w"], shapes_and_slices=[f"4 2 {i},2:0,2"],
                            data=[values[0] + i]) for i in (0, 2)]
    wrong = [raw.SaveSlices(filename=name + "1", tensor_names=["w"], shapes_and_slices=["4 2 0,3:-"], data=values[:1])]

    def restored(what, kind, part=None, at=name):
        if part is None:
            return [raw.Restore(file_pattern=at, tensor_name=what, dt=kind)]
        return [raw.RestoreSlice(file_pattern=at, tensor_name=what, shape_and_slice=part, dt=kind)]
    return [saved, parts, *([w] for w in wrong), restored("w", tf.float32), restored("s", tf.string),
            restored("n", tf.int64), restored("w", tf.float32, "2 2 0,1:-"), restored("w", tf.float64),
            restored("nothing", tf.float32), restored("w", tf.float32, at=f"{folder}/part-*"),
            restored("w", tf.float32, "4 2 1,2:-", f"{folder}/part-?"), restored("w", tf.float32, at=f"{folder}/none"),
            restored("w", tf.float32, "2 3 0,1:-"), restored("w", tf.float32, ""),
            *(restored(t.dtype.name, t.dtype, at=f"{folder}/kinds") for t in kinds),
            [raw.StringLength(input=raw.MatchingFiles(pattern=[f"{folder}/part-[02]", f"{folder}/*l*", f"{folder}/x/*"]))],
            [raw.StringLength(input=raw.MatchingFiles(pattern=f"{folder}/old"))],
            [raw.StringLength(input=raw.MatchingFiles(pattern=f"{folder[:-3]}???/p*-2"))]]


def encoded_images(_):
    steps = []
    for channels in (1, 2, 3, 4):
        for kind in (tf.uint8, tf.uint16):
            ramp = tf.reshape(tf.range(2 * 5 * 7 * channels) * (1 if kind == tf.uint8 else 251) % (1 << 8 * kind.size), [2, 5, 7, channels])
            files = raw.EncodePng(image=tf.cast(ramp, kind), compression=channels)
            steps.append([raw.DecodePng(contents=f, dtype=kind) for f in tf.unstack(files)])
    for channels, attrs in ((1, {}), (3, {}), (3, {"quality": 30}), (3, {"progressive": True}), (1, {"format": "grayscale"}),
                            (3, {"chroma_downsampling": False, "optimize_size": True}), (3, {"format": "rgb", "xmp_metadata": "abc"})):
        image = tf.cast(tf.reshape(tf.range(20 * 30 * channels) // 7 % 256, [20, 30, channels]), tf.uint8)
        steps.append([raw.DecodeJpeg(contents=raw.EncodeJpeg(image=image, **attrs))])
        steps.append([raw.DecodeJpeg(contents=raw.EncodeJpegVariableQuality(images=image, quality=50 + channels))])
    wrong = tf.zeros([3, 3, 2], tf.uint8)
    return steps + [[raw.EncodeJpeg(image=wrong)], [raw.EncodeJpeg(image=wrong[:, :, :1], format="rgb")],
                    [raw.EncodeJpegVariableQuality(images=wrong[:, :, :1], quality=101)],
                    [raw.EncodePng(image=tf.zeros([1, 3, 5], tf.uint8))]]


PROGRAMS = [branches, loops, reference_flow, stacks, tensor_arrays, tensor_lists, inputs, variables,
            steps_of_one_variable_as_two, messages, files, old_checkpoints, encoded_images,
            maps_of_sparse_tensors, decompositions, gradients_of_matrices, fused, *RANDOM_PROGRAMS,
            *STORE_PROGRAMS, *TABLE_PROGRAMS, *MODEL_PROGRAMS]

# Ops without state that a program must show all the same.
ONLY_IN_PROGRAMS = {
    "Switch", "_SwitchN", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "RefSwitch", "RefMerge", "RefEnter",
    "RefExit", "RefNextIteration", "ControlTrigger", "NoOp", "Const", "Placeholder", "Variable",
    "VariableV2", "PlaceholderWithDefault", "ReadFile", "_FusedMatMul", "InplaceAdd", "InplaceSub", "InplaceUpdate",
    "Eig", "MatchingFiles", "EncodePng", "EncodeJpeg", "EncodeJpegVariableQuality",
    "EmptyTensorList", *STORE_OPS, *MODEL_OPS,
    *("TensorList" + name for name in (
        "Concat", "ConcatLists", "ConcatV2", "ElementShape", "FromTensor", "Gather", "GetItem", "Length", "PopBack",
        "PushBack", "PushBackBatch", "Reserve", "Resize", "Scatter", "ScatterIntoExistingList", "ScatterV2",
        "SetItem", "Split", "Stack"))}

# Ops that a client cannot put into a graph, and where they run.
def _with_versions(names, versions):
    return [name + version for name in names.split() for version in versions]


ELSEWHERE = {
    **{name: "tests/ops/tensor_array/tensor_array_ops_test.cc" for name in _with_versions(
        "TensorArray TensorArrayClose TensorArrayConcat TensorArrayGather TensorArrayGrad TensorArrayRead "
        "TensorArrayScatter TensorArraySize TensorArraySplit TensorArrayWrite", ("", "V2"))},
    **{name: "tests/ops/tensor_array/tensor_array_ops_test.cc" for name in (
        "TensorArrayPack", "TensorArrayUnpack", "TensorArrayGradWithShape")},
    **{prefix + "Map" + name: "tests/ops/queues/map_staging_ops_test.cc" for prefix in ("", "Ordered") for name in (
        "Stage", "Unstage", "UnstageNoKey", "Peek", "Size", "IncompleteSize", "Clear")},
    **{name: "tests/ops/state/session_tensor_test.cc" for name in (
        "GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor", "DeleteSessionTensor")},
    **{name: "collectives_test.py and tests/ops/collectives/group_ops_test.cc" for name in _with_versions(
        "CollectiveReduce CollectiveGather CollectiveBcastSend CollectiveBcastRecv", ("", "V2"))},
    **{"Collective" + name: "collectives_test.py and tests/ops/collectives/group_ops_test.cc" for name in (
        "AllToAllV2", "AllToAllV3", "AssignGroupV2", "InitializeCommunicator", "ReduceScatterV2", "ReduceV3")},
    "Abort": "tests/ops/control_flow/control_flow_ops_test.cc; TensorFlow's ends the process",
    "AudioSummary": "tests/ops/summary/summary_ops_test.cc; TensorFlow refuses it in new graphs",
    "ImageSummary": "tests/ops/summary/summary_ops_test.cc; files that hold the same pixels may differ",
    "TensorSummary": "tests/ops/summary/summary_ops_test.cc; it tells the node's name, which differs",
    "AdjustContrast": "tests/ops/image/image_ops_test.cc; TensorFlow refuses it in new graphs",
    "TileGrad": "tests/ops/array/rearranging_ops_test.cc",
    "_ParallelConcatStart": "made of ParallelConcat, which is compared",
    "_Conv2DWithBias": "made of Conv2D and BiasAdd, which are compared; tests/runtime/network_passes_test.cc",
    "_ReluMaxPoolWithPlaces": "made of Relu and MaxPool, which are compared; tests/runtime/network_passes_test.cc",
    "_ReluMaxPoolGradOfPlaces": "made of their gradients, which are compared; tests/runtime/network_passes_test.cc",
    "_MaxPoolWithPlaces": "made of MaxPool, which is compared; tests/ops/nn/pooling_test.cc",
    "_MaxPoolGradOfPlaces": "made of MaxPoolGrad, which is compared; tests/ops/nn/pooling_test.cc",
    "RandomCrop": "tests/ops/random/draws_test.cc",
    "RandomPoisson": "tests/ops/random/draws_test.cc",
    "StatefulStandardNormal": "tests/ops/random/draws_test.cc",
    **{name: "programs_test.py and tests/ops/queues/queue_ops_test.cc" for name in _with_versions(
        "FIFOQueue PaddingFIFOQueue PriorityQueue RandomShuffleQueue QueueClose QueueDequeue "
        "QueueDequeueMany QueueDequeueUpTo QueueEnqueue QueueEnqueueMany QueueIsClosed QueueSize",
        ("", "V2"))},
    **{prefix + name: "programs_test.py and tests/ops/queues/accumulator_ops_test.cc"
       for prefix in ("", "Resource") for name in (
           "ConditionalAccumulator", "AccumulatorApplyGradient", "AccumulatorTakeGradient",
           "AccumulatorNumAccumulated", "AccumulatorSetGlobalStep")},
    **{name: "tests/ops/queues/accumulator_ops_test.cc" for name in (
        "SparseConditionalAccumulator", "SparseAccumulatorApplyGradient",
        "SparseAccumulatorTakeGradient")},
    **{name: "tests/ops/queues/staging_ops_test.cc" for name in (
        "Stage", "Unstage", "StagePeek", "StageSize", "StageClear")},
    **{name: "programs_test.py and tests/ops/lookup/lookup_ops_test.cc" for name in _with_versions(
        "HashTable MutableHashTable MutableHashTableOfTensors InitializeTable "
        "InitializeTableFromTextFile LookupTableInsert LookupTableImport LookupTableFind "
        "LookupTableSize LookupTableExport", ("", "V2")) + ["LookupTableRemoveV2"]},
    "SdcaOptimizer": "is SdcaOptimizerV2, which is compared, with another name of an attribute",
    **{name: "op_summary_writers_test.py and tests/ops/summary/summary_writer_test.cc" for name in (
        "SummaryWriter CreateSummaryFileWriter WriteSummary WriteScalarSummary WriteHistogramSummary WriteImageSummary "
        "WriteAudioSummary WriteGraphSummary WriteRawProtoSummary FlushSummaryWriter CloseSummaryWriter ImportEvent").split()},
    "MutableDenseHashTable": "tests/ops/lookup/dense_hash_table_test.cc; TensorFlow's kernel asks for an input that the op has not",
    **{name: "tests/ops/state/temporary_variable_test.cc" for name in (
        "DisableCopyOnRead", "ResourceCountUpTo", "TemporaryVariable")},
    **{"ResourceScatter" + name: "tests/ops/state/scatter_update_ops_test.cc" for name in (
        "Div", "Max", "Min", "Mul", "NdAdd", "NdMax", "NdMin", "NdSub", "NdUpdate")},
    "ResourceStridedSliceAssign": "tests/ops/state/scatter_update_ops_test.cc",
    "Multinomial": "tests/ops/random/stateless_test.cc",
    "StatelessRandomGetAlg": "tests/ops/random/stateless_test.cc",
    **{name: "tests/ops/io/reader_ops_test.cc" for name in _with_versions(
        "TextLineReader TFRecordReader FixedLengthRecordReader WholeFileReader IdentityReader "
        "ReaderRead ReaderReadUpTo ReaderReset ReaderNumRecordsProduced ReaderNumWorkUnitsCompleted "
        "ReaderSerializeState ReaderRestoreState",
        ("", "V2"))},
    **{name: "divided_pipelines_test.py" for name in (
        "AutoShardDataset ComputeBatchSize ParallelBatchDataset RebatchDataset").split()},
    **{name: "clusters_test.py" for name in "KMC2ChainInitialization KmeansPlusPlusInitialization NearestNeighbors".split()},
    **{name: "input_pipelines_test.py and tests/runtime/datasets_test.cc" for name in (
        "AnonymousRandomSeedGenerator AnonymousSeedGenerator AssertCardinalityDataset BatchDataset BatchDatasetV2 CSVDataset CSVDatasetV2 "
        "CacheDataset CacheDatasetV2 ConcatenateDataset DatasetCardinality DatasetToSingleElement "
        "DeleteRandomSeedGenerator DeleteSeedGenerator DenseToSparseBatchDataset DirectedInterleaveDataset DummySeedGenerator FilterDataset "
        "FinalizeDataset FixedLengthRecordDataset FixedLengthRecordDatasetV2 FlatMapDataset GroupByReducerDataset GroupByWindowDataset "
        "IgnoreErrorsDataset InterleaveDataset Iterator IteratorFromStringHandle IteratorFromStringHandleV2 "
        "IteratorGetNext IteratorGetNextAsOptional IteratorGetNextSync IteratorToStringHandle IteratorV2 "
        "LegacyParallelInterleaveDatasetV2 MakeIterator MapAndBatchDataset MapDataset MaxIntraOpParallelismDataset "
        "ModelDataset NonSerializableDataset OneShotIterator OptimizeDataset OptimizeDatasetV2 OptionalFromValue "
        "OptionalGetValue OptionalHasValue OptionalNone OptionsDataset PaddedBatchDataset PaddedBatchDatasetV2 "
        "ParallelInterleaveDataset ParallelInterleaveDatasetV2 ParallelInterleaveDatasetV3 "
        "ParallelInterleaveDatasetV4 ParallelMapDataset ParallelMapDatasetV2 ParseExampleDataset "
        "ParseExampleDatasetV2 PrefetchDataset PrivateThreadPoolDataset RandomDataset RandomDatasetV2 RangeDataset "
        "RebatchDatasetV2 ReduceDataset RepeatDataset RewriteDataset ScanDataset ShardDataset ShuffleAndRepeatDataset "
        "ShuffleAndRepeatDatasetV2 ShuffleDataset ShuffleDatasetV2 ShuffleDatasetV3 SkipDataset SparseTensorSliceDataset "
        "TFRecordDataset TFRecordDatasetV2 TakeDataset TakeWhileDataset TensorDataset TensorSliceDataset TextLineDataset "
        "UnbatchDataset UniqueDataset WindowDataset ZipDataset").split()},
    **{name: "strategy_estimators_test.py and tests/ops/data/multi_device_iterator_test.cc" for name in (
        "AnonymousMultiDeviceIterator AnonymousMultiDeviceIteratorV3 DeleteMultiDeviceIterator GeneratorDataset MultiDeviceIterator "
        "MultiDeviceIteratorFromStringHandle MultiDeviceIteratorGetNextFromShard MultiDeviceIteratorInit "
        "MultiDeviceIteratorToStringHandle").split()},
    "PlaceholderV2": "tests/ops/array/const_ops_test.cc; TensorFlow refuses it in new graphs",
    **{name: "tests/ops/nn/batch_norm_test.cc; TensorFlow refuses it in new graphs" for name in (
        "BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad")},
    **{name: "tests/ops/linalg/linalg_ops_test.cc; TensorFlow refuses it in new graphs" for name in (
        "BatchCholesky", "BatchCholeskyGrad", "BatchMatrixBandPart", "BatchMatrixDeterminant", "BatchMatrixDiag",
        "BatchMatrixDiagPart", "BatchMatrixInverse", "BatchMatrixSetDiag", "BatchMatrixSolve", "BatchMatrixSolveLs",
        "BatchMatrixTriangularSolve", "BatchSelfAdjointEig", "BatchSelfAdjointEigV2", "BatchSvd", "CholeskyGrad",
        "MatrixExponential", "SelfAdjointEig")},
    "TopK": "tests/ops/nn/top_k_test.cc; TensorFlow refuses it in new graphs",
    "_Arg": "every feed of this test", "_Retval": "every fetch of this test",
    "_Send": "tests/distributed/server_test.cc", "_Recv": "tests/distributed/server_test.cc",
    "_HostSend": "tests/ops/array/send_recv_ops_test.cc", "_HostRecv": "tests/ops/array/send_recv_ops_test.cc",
}
