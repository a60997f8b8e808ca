# SPDX-License-Identifier: Apache-2.0
"""The table of wrong_steps_test.py: graphs, feeds, fetches and states that are wrong.

NODES are steps whose ops refuse their inputs: a name, what builds the fetched tensor from
placeholders of unknown shape (`x(dtype)` makes the next), and the values that these are fed with.
STEPS are wrong as steps, on the graph of `build_base`. GRAPHS are refused by CreateSession, and
EXTENSIONS of `build_base` by ExtendSession; both are written as GraphDefs in text, NODE is short for
a node that is well. ENDLESS are the steps that TensorFlow's servers never answer. FATAL are the
cases that they do not survive. DIFFERENT says where Tenon's answer is another than TensorFlow's, and why.
"""

HANG = "no answer"
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


def build_base(tf):
    """What STEPS name."""
    with tf.device(WORKER):
        p = tf.placeholder(tf.float32, [2], name="p")
        k = tf.constant([1., 2.], name="k")
        tf.add(p, k, name="sum")
        tf.no_op(name="n")
        tf.split(k, 2, name="halves")
        tf.placeholder(tf.float32, [], name="scalar")
        tf.identity(tf.placeholder(tf.string, name="words"), name="same_words")
        tf.identity(tf.placeholder_with_default([1., 2.], [2], name="default"), name="same_default")
        off, on = tf.raw_ops.Switch(data=k, pred=False, name="switch")
        tf.identity(on, name="dead")
        tf.identity(off, name="alive")
        with tf.control_dependencies([on]):
            tf.no_op(name="dead_target")
    with tf.device(PS):
        v = tf.raw_ops.VariableV2(shape=[2], dtype=tf.float32, name="v")
        tf.identity(v, name="read_v")
        tf.assign_add(v, [1., 1.], name="add_v")
        r = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="r", name="r")
        tf.raw_ops.ReadVariableOp(resource=r, dtype=tf.float32, name="read_r")
        tf.raw_ops.AssignVariableOp(resource=r, value=p, name="set_r")
        tf.raw_ops.AssignAddVariableOp(resource=r, value=k, name="add_r")
        queue = tf.FIFOQueue(1, tf.float32, shapes=[[]], name="q", shared_name="q")
        queue.dequeue(name="take")
        closed = tf.FIFOQueue(1, tf.float32, shapes=[[]], name="c", shared_name="c")
        closed.close(name="close")
        closed.dequeue(name="take_closed")
        closed.enqueue(1., name="put_closed")
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant([1], tf.int64), tf.constant([2])), 0)
        tf.identity(table.lookup(tf.constant([1], tf.int64)), name="look_up")
        iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(1))
        tf.identity(iterator.get_next(), name="next")
        tf.group(iterator.initializer, name="init_next")


def nodes(tf):
    """NODES; a function because its dtypes are TensorFlow's."""
    f, i, l, s, b = tf.float32, tf.int32, tf.int64, tf.string, tf.bool
    r = tf.raw_ops
    m = [[1., 2.], [3., 4.]]
    return [
        ("add of shapes that do not fit", lambda x: x(f) + x(f), [1., 2.], [1., 2., 3.]),
        ("matmul of a vector", lambda x: tf.matmul(x(f), x(f)), [1., 2.], m),
        ("matmul of inner sizes", lambda x: tf.matmul(x(f), x(f)), m, [[1., 2.]]),
        ("batch matmul of inner sizes", lambda x: r.BatchMatMulV2(x=x(f), y=x(f)), [m], [[[1., 2.]]]),
        ("reshape to another size", lambda x: tf.reshape(x(f), x(i)), [1., 2.], [3]),
        ("reshape with two unknown sizes", lambda x: tf.reshape(x(f), x(i)), [1., 2.], [-1, -1]),
        ("reshape to a negative size", lambda x: tf.reshape(x(f), x(i)), [1., 2.], [-2]),
        ("gather beyond the end", lambda x: tf.gather(x(f), x(i)), [1., 2.], [2]),
        ("gather at a negative index", lambda x: tf.gather(x(f), x(i)), [1., 2.], [-1]),
        ("gather along no axis", lambda x: r.GatherV2(params=x(f), indices=x(i), axis=x(i)), m, [0], 3),
        ("gather_nd beyond the end", lambda x: tf.gather_nd(x(f), x(i)), m, [[2, 0]]),
        ("gather_nd of too many indices", lambda x: tf.gather_nd(x(f), x(i)), [1.], [[0, 0]]),
        ("scatter_nd beyond the end", lambda x: tf.scatter_nd(x(i), x(f), x(i)), [[5]], [1.], [3]),
        ("a window of the batch", lambda x: r.MaxPool(
            input=x(f), ksize=[2, 1, 1, 1], strides=[1, 1, 1, 1], padding="VALID"), [[m]]),
        ("a convolution with steps along the batch", lambda x: r.Conv2D(
            input=x(f), filter=x(f), strides=[2, 1, 1, 1], padding="VALID"), [[m]], [[m]]),
        ("edit distance outside the shape", lambda x: tf.edit_distance(
            tf.SparseTensor(x(l), x(s), x(l)), tf.SparseTensor(x(l), x(s), x(l))),
         [[0, 0], [5, 0]], ["a", "b"], [1, 2], [[0, 0]], ["a"], [1, 1]),
        ("set_diag of another length", lambda x: tf.linalg.set_diag(x(f), x(f)), m, [1.]),
        ("diagonals that no matrix has", lambda x: tf.linalg.diag_part(x(f), k=x(i)), m, [5, 6]),
        ("diagonals in no order", lambda x: tf.linalg.diag_part(x(f), k=x(i)), m, [1, 0]),
        ("concat of ranks", lambda x: tf.concat([x(f), x(f)], 0), [1.], m),
        ("concat of other sizes", lambda x: tf.concat([x(f), x(f)], 0), m, [[1.]]),
        ("concat along no axis", lambda x: r.ConcatV2(values=[x(f), x(f)], axis=x(i)), m, m, 2),
        ("stack of shapes", lambda x: tf.stack([x(f), x(f)]), [1.], [1., 2.]),
        ("split into unequal parts", lambda x: tf.split(x(f), 2)[0], [1., 2., 3.]),
        ("split of a scalar", lambda x: tf.split(x(f), 2)[0], 1.),
        ("split_v of another sum", lambda x: tf.split(x(f), x(i), num=2)[0], [1., 2., 3.], [1, 1]),
        ("unstack of another number", lambda x: tf.unstack(x(f), 2)[0], [1., 2., 3.]),
        ("slice beyond the end", lambda x: tf.slice(x(f), x(i), x(i)), [1., 2.], [1], [2]),
        ("slice before the beginning", lambda x: tf.slice(x(f), x(i), x(i)), [1., 2.], [-1], [1]),
        ("strided slice with stride 0", lambda x: r.StridedSlice(
            input=x(f), begin=x(i), end=x(i), strides=x(i)), [1., 2.], [0], [1], [0]),
        ("strided slice beyond the end", lambda x: x(f)[x(i)], [1., 2.], 7),
        ("pad of a negative size", lambda x: tf.pad(x(f), x(i)), [1.], [[-1, 0]]),
        ("pad of another rank", lambda x: tf.pad(x(f), x(i)), [1.], [[0, 0], [0, 0]]),
        ("tile of another rank", lambda x: tf.tile(x(f), x(i)), [1.], [1, 2]),
        ("tile a negative time", lambda x: tf.tile(x(f), x(i)), [1.], [-1]),
        ("transpose by no permutation", lambda x: tf.transpose(x(f), x(i)), m, [0, 0]),
        ("transpose beyond the rank", lambda x: tf.transpose(x(f), x(i)), m, [0, 2]),
        ("expand_dims too far", lambda x: tf.expand_dims(x(f), x(i)), [1.], 3),
        ("squeeze of a size 2", lambda x: tf.squeeze(x(f), [0]), [1., 2.]),
        ("broadcast to a smaller shape", lambda x: tf.broadcast_to(x(f), x(i)), [1., 2.], [1]),
        ("fill of a negative size", lambda x: tf.fill(x(i), x(f)), [-1], 1.),
        ("fill with a vector", lambda x: tf.fill(x(i), x(f)), [2], [1., 2.]),
        ("range without an end", lambda x: tf.range(x(i), x(i), x(i)), 0, 5, 0),
        ("range the wrong way", lambda x: tf.range(x(i), x(i), x(i)), 5, 0, 1),
        ("linspace of no numbers", lambda x: r.LinSpace(start=x(f), stop=x(f), num=x(i)), 0., 1., 0),
        ("one_hot of a negative depth", lambda x: tf.one_hot(x(i), x(i)), [0], -1),
        ("sum along no axis", lambda x: tf.reduce_sum(x(f), x(i)), [1.], 2),
        ("argmax along no axis", lambda x: tf.argmax(x(f), x(i)), [1.], 2),
        ("argmax of nothing", lambda x: tf.argmax(x(f), 0), []),
        ("top of more than there are", lambda x: tf.nn.top_k(x(f), x(i))[0], [1.], 2),
        ("integer division by zero", lambda x: x(i) // x(i), [1], [0]),
        ("integer remainder of zero", lambda x: x(i) % x(i), [1], [0]),
        ("negative integer power", lambda x: tf.pow(x(i), x(i)), [2], [-1]),
        ("numbers that are none", lambda x: tf.check_numerics(x(f), "here"), float("nan")),
        ("inverse of a singular matrix", lambda x: tf.linalg.inv(x(f)), [[1., 1.], [1., 1.]]),
        ("inverse of a rectangle", lambda x: tf.linalg.inv(x(f)), [[1., 2.]]),
        ("cholesky of no such matrix", lambda x: tf.linalg.cholesky(x(f)), [[-1.]]),
        ("solve a singular system", lambda x: tf.linalg.solve(x(f), x(f)), [[0.]], [[1.]]),
        ("segments that are not sorted", lambda x: tf.math.segment_sum(x(f), x(i)), [1., 2.], [1, 0]),
        ("segments of another number", lambda x: tf.math.segment_sum(x(f), x(i)), [1., 2.], [0]),
        ("unsorted segments beyond the end", lambda x: tf.math.unsorted_segment_sum(
            x(f), x(i), x(i)), [1.], [3], 2),
        ("softmax of a scalar", lambda x: r.Softmax(logits=x(f)), 1.),
        ("cross entropy of other shapes", lambda x: r.SoftmaxCrossEntropyWithLogits(
            features=x(f), labels=x(f))[0], m, [[1.]]),
        ("sparse cross entropy of another number", lambda x: r.SparseSoftmaxCrossEntropyWithLogits(
            features=x(f), labels=x(i))[0], m, [0]),
        ("sparse cross entropy of no class", lambda x: r.SparseSoftmaxCrossEntropyWithLogits(
            features=x(f), labels=x(i))[0], [[1., 2.]], [2]),
        ("in_top_k of another number", lambda x: tf.nn.in_top_k(x(f), x(i), 1), m, [0]),
        ("bias of another size", lambda x: tf.nn.bias_add(x(f), x(f)), m, [1.]),
        ("convolution of other channels", lambda x: tf.nn.conv2d(x(f), x(f), 1, "SAME"),
         [[[[1., 2.]]]], [[[[1.], [2.], [3.]]]]),
        ("convolution of a matrix", lambda x: tf.nn.conv2d(x(f), x(f), 1, "SAME"), m, [[[[1.]]]]),
        ("pooling of a matrix", lambda x: tf.nn.max_pool2d(x(f), 2, 2, "SAME"), m),
        ("a batch norm of another size", lambda x: r.FusedBatchNorm(
            x=x(f), scale=x(f), offset=x(f), mean=x(f), variance=x(f), is_training=False)[0],
         [[[[1., 2.]]]], [1.], [1., 1.], [1., 1.], [1., 1.]),
        ("text that is no number", lambda x: tf.strings.to_number(x(s)), "one"),
        ("bytes that are no numbers", lambda x: tf.io.decode_raw(x(s), f), "abc"),
        ("base64 that is none", lambda x: tf.io.decode_base64(x(s)), "!!!"),
        ("a substring beyond the end", lambda x: tf.strings.substr(x(s), x(i), x(i)), "abc", 5, 1),
        ("a regular expression that is none", lambda x: tf.strings.regex_replace(x(s), x(s), "a"),
         "abc", "("),
        ("csv with a missing field", lambda x: tf.io.decode_csv(x(s), [[1.], [1.]])[0], "1"),
        ("csv that is no number", lambda x: tf.io.decode_csv(x(s), [[1.]])[0], "x"),
        ("an example that is none", lambda x: tf.io.parse_single_example(
            x(s), {"a": tf.io.FixedLenFeature([], f)})["a"], "abc"),
        ("an example without the feature", lambda x: tf.io.parse_single_example(
            x(s), {"a": tf.io.FixedLenFeature([], f)})["a"], ""),
        ("a png that is none", lambda x: tf.io.decode_png(x(s)), "abc"),
        ("a tensor that is none", lambda x: tf.io.parse_tensor(x(s), f), "abc"),
        ("a file that is not there", lambda x: tf.io.read_file(x(s)), "/nowhere/at/all"),
        ("a checkpoint that is not there", lambda x: r.RestoreV2(
            prefix=x(s), tensor_names=["a"], shape_and_slices=[""], dtypes=[f])[0], "/nowhere/at"),
        ("a sparse tensor of another rank", lambda x: tf.sparse.to_dense(
            tf.SparseTensor(x(l), x(f), x(l))), [[0, 0]], [1.], [3]),
        ("a sparse index beyond the end", lambda x: r.SparseToDense(
            sparse_indices=x(l), output_shape=x(l), sparse_values=x(f), default_value=0.),
         [[5]], [3], [1.]),
        ("sparse indices that are not sorted", lambda x: r.SparseToDense(
            sparse_indices=x(l), output_shape=x(l), sparse_values=x(f), default_value=0.),
         [[2], [1]], [3], [1., 2.]),
        ("random numbers of a negative shape", lambda x: tf.random.uniform(x(i)), [-1]),
        ("random integers of an empty interval", lambda x: r.RandomUniformInt(
            shape=x(i), minval=x(i), maxval=x(i)), [2], 5, 5),
        ("a multinomial of a vector", lambda x: r.Multinomial(logits=x(f), num_samples=x(i)), [1.], 1),
        ("an assertion that fails", lambda x: identity_after(tf, tf.Assert(x(b), ["no"])), False),
        ("two shapes that must be equal", lambda x: tf.ensure_shape(x(f), [3]), [1., 2.]),
        ("a merge of two dead inputs", lambda x: dead_merge(tf, x(b)), True),
        ("a where of other shapes", lambda x: r.Select(condition=x(b), x=x(f), y=x(f)),
         [True, False, True], [1., 2.], [1., 2.]),
        ("a reverse along no axis", lambda x: tf.reverse(x(f), x(i)), [1.], [1]),
        ("a matrix diagonal of a scalar", lambda x: r.MatrixDiag(diagonal=x(f)), 1.),
        ("an element read beyond the array", lambda x: tf.TensorArray(f, 2).read(x(i)), 5),
        ("an element that was not written", lambda x: tf.TensorArray(f, 2).read(x(i)), 0),
        ("a bincount of a negative size", lambda x: r.Bincount(arr=x(i), size=x(i), weights=x(f)),
         [1], -1, []),
        ("a cumulative sum along no axis", lambda x: tf.cumsum(x(f), x(i)), [1.], 1),
        ("a switch on a vector", lambda x: r.Switch(data=1., pred=x(b))[0], [True]),
        ("a box that is none", lambda x: r.CropAndResize(
            image=x(f), boxes=x(f), box_ind=x(i), crop_size=[1, 1]), [[[[1.]]]], [[0., 0., 1.]], [0]),
        ("an image of no size", lambda x: r.ResizeBilinear(images=x(f), size=x(i)), [[[[1.]]]], [0, 1]),
    ]


def identity_after(tf, operation):
    with tf.control_dependencies([operation]):
        return tf.constant(1.)


def dead_merge(tf, condition):
    """Neither input is alive when the condition is true."""
    off = tf.raw_ops.Switch(data=1., pred=condition)[0]
    return tf.raw_ops.Merge(inputs=[off, off])[0]


P = ("p:0", [1., 2.])
STEPS = [
    ("nothing to do", {}),
    ("only feeds", dict(feed=[P])),
    ("an unknown fetch", dict(fetch=["no:0"])),
    ("an unknown feed", dict(feed=[("no:0", 1.)], fetch=["k:0"])),
    ("an unknown target", dict(target=["no"])),
    ("a target with an output", dict(target=["k:0"])),
    ("a fetch of an output that is not there", dict(fetch=["k:3"])),
    ("a feed of an output that is not there", dict(feed=[("k:3", 1.)], fetch=["sum:0"])),
    ("a fetch of a second output that is not there", dict(fetch=["halves:2"])),
    ("a fetch of an op without outputs", dict(fetch=["n:0"])),
    ("a fetch of a control output", dict(fetch=["^k"])),
    ("a fetch without a name", dict(fetch=[""])),
    ("a fetch with a negative output", dict(fetch=["k:-1"])),
    ("a fetch that is no name", dict(fetch=["k:x"])),
    ("a feed without a name", dict(feed=[("", 1.)], fetch=["k:0"])),
    ("a feed without output", dict(feed=[("p", [1., 2.])], fetch=["sum:0"])),
    ("a fetch without output", dict(fetch=["k"])),
    ("a fetch of a part", dict(fetch=["k:0", "no:0"])),
    ("fed twice", dict(feed=[P, P], fetch=["sum:0"])),
    ("fed and fetched", dict(feed=[P], fetch=["p:0"])),
    ("a fetch twice", dict(fetch=["k:0", "k:0"])),
    ("a target twice", dict(target=["n", "n"])),
    ("a placeholder that is not fed", dict(fetch=["sum:0"])),
    ("a placeholder as a target", dict(target=["p"])),
    ("a feed of another dtype", dict(feed=[("p:0", [1, 2])], fetch=["sum:0"])),
    ("a feed of texts for numbers", dict(feed=[("p:0", ["a", "b"])], fetch=["sum:0"])),
    ("a feed of numbers for texts", dict(feed=[("words:0", [1.])], fetch=["same_words:0"])),
    ("a feed of another shape", dict(feed=[("p:0", [1., 2., 3.])], fetch=["sum:0"])),
    ("a feed of another shape for a default", dict(feed=[("default:0", [1.])],
                                                   fetch=["same_default:0"])),
    ("a feed that the step does not need", dict(feed=[("scalar:0", 1.)], fetch=["k:0"])),
    ("a dead fetch", dict(fetch=["dead:0"])),
    ("a dead target", dict(target=["dead_target"])),
    ("a dead fetch among others", dict(fetch=["alive:0", "dead:0"])),
    ("an uninitialised variable", dict(fetch=["read_v:0"])),
    ("an uninitialised variable itself", dict(fetch=["v:0"])),
    ("an uninitialised variable that is updated", dict(target=["add_v"])),
    ("an uninitialised resource variable", dict(fetch=["read_r:0"])),
    ("an uninitialised resource variable that is updated", dict(target=["add_r"])),
    ("a handle that is fetched", dict(fetch=["r:0"])),
    ("a table without its contents", dict(fetch=["look_up:0"])),
    ("an iterator that has not begun", dict(fetch=["next:0"])),
    ("a limit of time", dict(fetch=["take:0"], options=dict(timeout_in_ms=300))),
    ("a closed queue", dict(target=["close"]), dict(fetch=["take_closed:0"])),
    ("an element for a closed queue", dict(target=["close"]), dict(target=["put_closed"])),
    ("a queue that is closed twice", dict(target=["close"]), dict(target=["close"])),
    ("an iterator at its end", dict(target=["init_next"]), dict(fetch=["next:0"]),
     dict(fetch=["next:0"])),
    ("a negative limit of time", dict(fetch=["k:0"], options=dict(timeout_in_ms=-5))),
    ("an unknown trace level", dict(fetch=["k:0"], options=dict(trace_level=77))),
    ("a pool of threads that is not there", dict(fetch=["k:0"],
                                                 options=dict(inter_op_thread_pool=9))),
    ("a watch on a tensor", dict(fetch=["k:0"], options=dict(debug_options=dict(
        debug_tensor_watch_opts=[dict(node_name="k", debug_ops=["DebugIdentity"],
                                      debug_urls=["file:///nowhere"])])))),
    ("a watch that writes nowhere", dict(fetch=["k:0"], options=dict(debug_options=dict(
        debug_tensor_watch_opts=[dict(node_name="k", debug_ops=["DebugIdentity"])])))),
]

NODE = 'node {name: "a" op: "NoOp"} '
CONST = ('node {name: "k" op: "Const" attr {key: "dtype" value {type: DT_FLOAT}} attr {key: "value" '
         'value {tensor {dtype: DT_FLOAT tensor_shape {} float_val: 1}}}} ')
IDENTITY = 'node {name: "i" op: "Identity" input: "%s" attr {key: "T" value {type: %s}}} '
GRAPHS = [
    ("an op that nobody knows", 'node {name: "a" op: "NoSuchOp"}'),
    ("an op without a name", 'node {name: "a"}'),
    ("a node without a name", 'node {op: "NoOp"}'),
    ("a name that is none", 'node {name: "a b" op: "NoOp"}'),
    ("a name for the runtime", 'node {name: "_a" op: "NoOp"}'),
    ("a name twice", NODE + NODE),
    ("an input that is not there", IDENTITY % ("k", "DT_FLOAT")),
    ("an output that is not there", CONST + IDENTITY % ("k:1", "DT_FLOAT")),
    ("a negative output", CONST + IDENTITY % ("k:-1", "DT_FLOAT")),
    ("a control input that is not there", 'node {name: "a" op: "NoOp" input: "^k"}'),
    ("an input of another dtype", CONST + IDENTITY % ("k", "DT_INT32")),
    ("an input too many", CONST + 'node {name: "a" op: "NoOp" input: "k"}'),
    ("an input too few", 'node {name: "i" op: "Identity" attr {key: "T" value {type: DT_FLOAT}}}'),
    ("an input after a control input", CONST + NODE + 'node {name: "i" op: "Identity" input: "^a" '
     'input: "k" attr {key: "T" value {type: DT_FLOAT}}}'),
    ("an attribute that is missing", 'node {name: "k" op: "Const"}'),
    ("an attribute of another kind", CONST.replace("type: DT_FLOAT}} attr", 'i: 1}} attr')),
    ("an attribute that nobody knows", 'node {name: "a" op: "NoOp" attr {key: "b" value {i: 1}}}'),
    ("a dtype that the op does not take", 'node {name: "a" op: "Placeholder" attr {key: "dtype" value '
     '{type: DT_STRING}}} node {name: "b" op: "Neg" input: "a" attr {key: "T" value {type: DT_STRING}}}'),
    ("a constant of another dtype", CONST.replace("{dtype: DT_FLOAT", "{dtype: DT_INT32")),
    ("a constant without its values", CONST.replace("tensor_shape {} float_val: 1",
                                                    "tensor_shape {dim {size: 3}} tensor_content: 'ab'")),
    ("a constant of a negative size", CONST.replace("tensor_shape {}", "tensor_shape {dim {size: -3}}")),
    ("a cycle", IDENTITY.replace('"i"', '"j"') % ("i", "DT_FLOAT") + IDENTITY % ("j", "DT_FLOAT")),
    ("a node that takes itself", IDENTITY % ("i", "DT_FLOAT")),
    ("a device that is none", 'node {name: "a" op: "NoOp" device: "somewhere"}'),
    ("a device of no job", 'node {name: "a" op: "NoOp" device: "/job:nowhere"}'),
    ("a device of no task", 'node {name: "a" op: "NoOp" device: "/job:ps/task:7"}'),
    ("a device that the task lacks", 'node {name: "a" op: "NoOp" device: "/job:ps/task:0/device:CPU:7"}'),
    ("a GPU that is not there", CONST.replace('op: "Const"',
                                              'op: "Const" device: "/job:worker/task:0/device:GPU:0"')),
    ("nodes together on two devices", CONST.replace('op: "Const"', 'op: "Const" device: "/job:ps/task:0"') +
     'node {name: "i" op: "Identity" input: "k" device: "/job:worker/task:0" attr {key: "T" value {type: '
     'DT_FLOAT}} attr {key: "_class" value {list {s: "loc:@k"}}}}'),
    ("a node together with nobody", CONST.replace('attr {key: "dtype"',
                                                  'attr {key: "_class" value {list {s: "loc:@no"}}} attr '
                                                  '{key: "dtype"')),
    ("a version from the future", NODE + "versions {producer: 1645 min_consumer: 99999}"),
    ("a version that is too old", NODE + "versions {producer: -1}"),
    ("a function that calls nobody", NODE + 'library {function {signature {name: "f"} node_def {name: '
     '"a" op: "NoSuchOp"}}}'),
    ("a function twice", NODE + 'library {function {signature {name: "f"}} function {signature {name: "f"} '
     'node_def {name: "a" op: "NoOp"}}}'),
    ("shapes that cannot fit", 'node {name: "p" op: "Placeholder" attr {key: "dtype" value {type: '
     'DT_FLOAT}} attr {key: "shape" value {shape {dim {size: 2} dim {size: 3}}}}} node {name: "m" op: '
     '"MatMul" input: "p" input: "p" attr {key: "T" value {type: DT_FLOAT}}}'),
    ("an unknown op in an empty graph", "library {gradient {function_name: 'f' gradient_func: 'g'}}"),
    ("a loop that ends in no next iteration", CONST + 'node {name: "m" op: "Merge" input: "k" input: "m2" '
     'attr {key: "T" value {type: DT_FLOAT}} attr {key: "N" value {i: 2}}} node {name: "m2" op: '
     '"Identity" input: "m" attr {key: "T" value {type: DT_FLOAT}}}'),
]

EXTENSIONS = [
    ("a name that is there", 'node {name: "n" op: "NoOp"}'),
    ("an input that is not there", IDENTITY % ("nobody", "DT_FLOAT")),
    ("an op that nobody knows", 'node {name: "a" op: "NoSuchOp"}'),
    ("a device that is not there", 'node {name: "a" op: "NoOp" device: "/job:ps/task:7"}'),
    ("another dtype", IDENTITY % ("k", "DT_INT32")),
    ("nothing", ""),
]

ENDLESS = {"a limit of time"}

# Cases that end TensorFlow's server or its session for good, by group and name: what Tenon gives.
FATAL = {
    ("graph", "an input too few"): "InvalidArgumentError",
    ("state", "callables_with_wrong_feeds"): ["OK", "InvalidArgumentError", "InvalidArgumentError"],
    ("state", "a_filter_that_is_none"): ["InvalidArgumentError"],
}

# What Tenon gives, by group and name, where it is another answer than TensorFlow's, and why.
AT_ONCE = "what is wrong with a graph is found when it comes, not when a step needs it"
SPELLED = "the feed and what it must be are named, as for one of another shape; it is the client's mistake"
DIFFERENT = {
    ("node", "edit distance outside the shape"): (
        "InvalidArgumentError", "wrong inputs are not errors of the system"),
    ("step", "a feed of another dtype"): (["InvalidArgumentError"], SPELLED),
    ("step", "a feed of texts for numbers"): (["InvalidArgumentError"], SPELLED),
    ("step", "a feed of numbers for texts"): (["InvalidArgumentError"], SPELLED),
    ("step", "a feed of another shape for a default"): (
        ["InvalidArgumentError"], "a placeholder's shape is a promise: what follows relies on it"),
    ("step", "an uninitialised resource variable that is updated"): (
        ["FailedPreconditionError"], "the same as when it is read"),
    ("step", "a fetch of a control output"): (["NotFoundError"], "no tensor has that name"),
    ("step", "a limit of time"): (["DeadlineExceededError"], "there the server leaves it to its client"),
    ("step", "a watch on a tensor"): (["UnimplementedError"], "there nothing is written and nothing said"),
    ("graph", "an attribute that is missing"): ("InvalidArgumentError", "as any attribute that is wrong"),
    ("graph", "an attribute of another kind"): ("InvalidArgumentError", AT_ONCE),
    ("graph", "a constant without its values"): ("InvalidArgumentError", AT_ONCE),
    ("graph", "a constant of a negative size"): ("InvalidArgumentError", AT_ONCE),
}
