#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What functions do beside giving values: which assignments in their bodies, in branches and loops of both
kinds, happen though no result needs them, and that they are over when the call is.

Each program runs on TensorFlow's server and on Tenon's, from fresh variables, and gives the same values and
leaves the same in the variables. Runs itself again under the TensorFlow environment (TENON_TF_VENV).
"""
from tensorflow_environment import Servers, main_with_tensorflow


def legacy(body, **options):
    """A function that does not say which of its nodes must run."""
    from tensorflow.python.framework import function

    def legacy_function():
        return body()

    return function.Defun(**options)(legacy_function)


def plain(tf, v, w):
    v.assign_add(1.)
    return tf.constant(3.) + 1.


def both_assigned(tf, v, w):
    return tf.cond(tf.placeholder_with_default(True, []), lambda: [v.assign_add(1.), w.assign_add(1.)],
                   lambda: [v.assign_add(2.), w.assign_add(2.)])[1]


def in_branch(tf, v, w, taken=True):
    def branch():
        v.assign_add(1.)
        return w + 1.
    return tf.cond(tf.placeholder_with_default(taken, []), branch, lambda: w + 2.)


def in_other_branch(tf, v, w):
    return in_branch(tf, v, w, taken=False)


def in_loop(tf, v, w):
    def body(i):
        v.assign_add(1.)
        return i + 1.
    return tf.while_loop(lambda i: i < 3., body, [tf.constant(0.)])


def in_branch_in_loop(tf, v, w):
    def branch(i):
        v.assign_add(1.)
        return i + 1.
    return tf.while_loop(lambda i: i < 5.,
                         lambda i: tf.cond(i > 2., lambda: branch(i), lambda: i + 1.), [tf.constant(0.)])


def in_loop_in_loop(tf, v, w):
    def inner(j):
        v.assign_add(1.)
        return j + 1.
    return tf.while_loop(lambda i: i < 3.,
                         lambda i: tf.while_loop(lambda j: j < 2., inner, [i * 0.]) + i - 1.,
                         [tf.constant(0.)])


def in_loop_that_gives_nothing(tf, v, w):
    in_loop(tf, v, w)
    return w + 5.


def in_case(tf, v, w):
    def branch():
        v.assign_add(1.)
        return w + 1.
    return tf.switch_case(tf.placeholder_with_default(1, []), [branch, branch])


def checked(limit):
    def body(tf, v, w):
        with tf.control_dependencies([tf.Assert(w < limit, [w])]):
            return tf.identity(w + 1.)
    body.__name__ = f"checked_{limit:g}"
    return body


BODIES = [plain, both_assigned, in_branch, in_other_branch, in_loop, in_branch_in_loop, in_loop_in_loop,
          in_loop_that_gives_nothing, in_case, checked(7.), checked(0.)]


def direct(tf, body, v, w):
    return body(tf, v, w)


def defun(tf, body, v, w):
    return legacy(lambda: body(tf, v, w))()


def defun_not_inlined(tf, body, v, w):
    return legacy(lambda: body(tf, v, w), noinline=True)()


def defun_in_defun(tf, body, v, w):
    return legacy(lambda: defun(tf, body, v, w) * 2.)()


def tf_function(tf, body, v, w):
    from tensorflow.python.eager import def_function
    return def_function.function(lambda: body(tf, v, w))()


def in_taken_branch(tf, body, v, w):
    """In one that functional control flow takes, and in one that it does not."""
    p = tf.placeholder_with_default(True, [])
    return tf.cond(p, lambda: defun(tf, body, v, w), lambda: tf.constant(9.)) + tf.cond(
        p, lambda: tf.constant(9.), lambda: defun(tf, body, v, w))


def called(op):
    def call(tf, body, v, w):
        f = legacy(lambda: body(tf, v, w))
        f.add_to_graph(tf.get_default_graph())
        # What the body captures is an argument.
        return getattr(tf.raw_ops, op)(args=list(f.captured_inputs), Tout=[tf.float32], f=f)[0]
    call.__name__ = op
    return call


def branch_of(op, lowered):
    def call(tf, body, v, w):
        f = legacy(lambda: body(tf, v, w))
        f.add_to_graph(tf.get_default_graph())
        y = getattr(tf.raw_ops, op)(cond=tf.placeholder_with_default(True, []), input=list(f.captured_inputs),
                                    Tout=[tf.float32], then_branch=f, else_branch=f)[0]
        if lowered:
            y.op._set_attr("_lower_using_switch_merge", tf.AttrValue(b=True))
        return y
    call.__name__ = op + ("_lowered" if lowered else "")
    return call


CALLS = [direct, defun, defun_not_inlined, defun_in_defun, tf_function, in_taken_branch, called("PartitionedCall"),
         called("StatefulPartitionedCall"), branch_of("If", False), branch_of("If", True),
         branch_of("StatelessIf", False), branch_of("StatelessIf", True)]


# What has another outcome, and why.
DIFFERENT = {
    ("in_taken_branch", "in_case", False): "TensorFlow's server does not inline a function of an old graph that is "
                                           "called on a branch of old control flow, nor lowers what is in it",
}


class Program:
    """A call of a body, with variables of its own, in the graph that is being built."""

    def __init__(self, tf, call, body):
        self.body, self.mistake = body, None
        with tf.variable_scope(body.__name__):
            self.variables = [tf.get_variable(name, initializer=1., use_resource=True) for name in ("v", "w")]
            try:
                y = call(tf, body, *self.variables)
            except (TypeError, ValueError, AttributeError) as e:
                self.mistake = f"cannot be built: {type(e).__name__}"
                return
            with tf.control_dependencies([y]):
                after = self.variables[0].read_value()
            self.fetches = [y] if call is direct else [y, after]

    def run(self, tf, session):
        """The value, and what a read after the call finds; the error's code for an error."""
        if self.mistake:
            return self.mistake
        try:
            return session.run(self.fetches)
        except tf.errors.OpError as e:
            return type(e).__name__


def outcomes(tf, programs, target):
    """What came of each program, and what is left in its variables; of a failed one, only its error."""
    with tf.Session(target, config=tf.ConfigProto(isolate_session_state=True)) as session:
        session.run(tf.global_variables_initializer())
        found = [program.run(tf, session) for program in programs]
        left = session.run([program.variables for program in programs])
    return [f if isinstance(f, str) else (f, l) for f, l in zip(found, left)]


def run_all():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    failed = built = 0
    with Servers({"worker": 1}) as ours, Servers({"worker": 1}, tensorflow=[("worker", 0)]) as theirs:
        for call in CALLS:
            for functional in (False, True):
                (tf.enable_control_flow_v2 if functional else tf.disable_control_flow_v2)()
                with tf.Graph().as_default():
                    programs = [Program(tf, call, body) for body in BODIES]
                    wanted, found = (outcomes(tf, programs, s.target("worker")) for s in (theirs, ours))
                for program, w, f in zip(programs, wanted, found):
                    built += not program.mistake
                    name = program.body.__name__
                    if (f != w) != ((call.__name__, name, functional) in DIFFERENT):
                        failed += 1
                        print(f"{call.__name__}({name}), {'functional' if functional else 'old'} control flow: "
                              f"found {f}, wanted {w}")
    assert built > 200, f"only {built} programs could be built"
    print(f"{built} programs, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    main_with_tensorflow(run_all)
