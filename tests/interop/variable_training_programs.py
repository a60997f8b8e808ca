# SPDX-License-Identifier: Apache-2.0
"""Programs as people train with them, whose answers depend on when variables are read: each with
reference and with resource variables. For ref_variables_test.py; see variable_programs.py."""
import tensorflow.compat.v1 as tf

from variable_programs import after, program


def variables(kind, **options):
    """In both kinds of variables: the program gets a function that makes one."""
    def add(build):
        for use_resource in (False, True):
            def of_kind(places, use_resource=use_resource):
                made = []

                def variable(initial, trainable=True, **more):
                    made.append(None)
                    return tf.get_variable(f"v{len(made)}", initializer=initial,
                                           trainable=trainable, use_resource=use_resource, **more)
                return build(places, variable)
            name = build.__name__ + ("_by_handle" if use_resource else "")
            program(kind, name, **options)(of_kind)
        return build
    return add


def _sgd(rate=.25):
    return tf.train.GradientDescentOptimizer(rate)


@variables("task", warm_up=3)
def accumulate_and_apply_every_second_step(places, variable):
    with places.setter():
        v = variable(1.)
        total, count = variable(0., trainable=False), variable(0, trainable=False)
        gradient = tf.gradients(tf.square(v), [v])[0]
        added = total.assign_add(gradient)
        counted = after(added, lambda: count.assign_add(1))

        def apply():
            applied = v.assign_sub(.1 * total.read_value())
            return after(applied, lambda: tf.group(total.assign(0.)))
        step = after(counted, lambda: tf.cond(tf.equal(count.read_value() % 2, 0), apply, tf.no_op))
        return after(step, lambda: [v.read_value() * 1., total.read_value() * 1.,
                                    count.read_value() * 1])


@variables("task", warm_up=2)
def average_moved_on_a_condition(places, variable):
    with places.setter():
        v, average = variable(1.), variable(0., trainable=False)
        stepped = v.assign_add(4.)

        def move():
            now = average.read_value()
            return tf.group(average.assign(now + .5 * (v.read_value() - now)))
        moved = after(stepped, lambda: tf.cond(v.read_value() > 6., move, tf.no_op))
        return after(moved, lambda: [v.read_value() + 0., average.read_value() + 0.])


@variables("task", warm_up=2)
def counters_of_cases(places, variable):
    with places.setter():
        counts = [variable(0.), variable(0.), variable(0.)]
        turn = variable(0, trainable=False)
        now = turn.assign_add(1)
        which = after(now, lambda: turn.read_value() % 3)
        step = tf.case([(tf.equal(which, i), lambda c=c: tf.group(c.assign_add(1.)))
                        for i, c in enumerate(counts)], default=tf.no_op)
        return after(step, lambda: tf.stack([c.read_value() for c in counts]))


@variables("task")
def descent_in_a_loop(places, variable):
    with places.setter():
        v = variable(1.)

        def body(i):
            now = v.read_value()
            return after(v.assign(now - .25 * 2. * now), lambda: i + 1)
        turns = tf.while_loop(lambda i: i < 3, body, [0], parallel_iterations=1)
        return after(turns, lambda: v.read_value() * 1.)


@variables("task", warm_up=3)
def dynamic_loss_scale(places, variable):
    with places.setter():
        scale, good = variable(8., trainable=False), variable(0, trainable=False)
        finite = tf.less(scale.read_value(), 12.)

        def grow():
            return after(good.assign_add(1), lambda: tf.cond(
                tf.equal(good.read_value() % 2, 0),
                lambda: tf.group(scale.assign(scale.read_value() * 2.)), tf.no_op))

        def shrink():
            return tf.group(scale.assign(scale.read_value() / 2.), good.assign(0))
        step = tf.cond(finite, grow, shrink)
        return after(step, lambda: [scale.read_value() * 1., good.read_value() * 1])


@variables("task", warm_up=1)
def push_then_pull(places, variable):
    with places.ps():
        shared = variable(1., trainable=False)
    with places.worker():
        own = variable(0.)
        pushed = shared.assign_add(2.)
        pulled = after(pushed, lambda: own.assign(shared.read_value()))
        return after(pulled, lambda: own.read_value() * 10.)


@variables("task", warm_up=1)
def copies_of_two_workers(places, variable):
    """As distributed_replicated of tf_cnn_benchmarks: each worker updates the shared variables and
    then copies them."""
    with places.ps():
        shared = variable(1., trainable=False)
    copies = []
    for i in range(2):
        with places.worker(i):
            copies.append(variable(1.))
    gradients = []
    for i in range(2):
        with places.worker(i):
            gradients.append(tf.gradients(tf.square(copies[i]), [copies[i]])[0])
    with places.ps():
        update = _sgd(.1).apply_gradients([(gradients[0] + gradients[1], shared)])
    pulls = []
    for i in range(2):
        with places.worker(i):
            pulls.append(after(update, lambda c=copies[i]: c.assign(shared.read_value()).op))
    with tf.control_dependencies(pulls):
        return [c.read_value() * 1. for c in copies]


@variables("task", warm_up=2)
def barrier_of_queues(places, variable):
    with places.setter():
        v = variable(0.)
        step = v.assign_add(1.)
        with places.ps():
            queues = [tf.FIFOQueue(10, [tf.float32], [[]]) for _ in range(2)]
        with tf.control_dependencies([step]):
            puts = [q.enqueue(v.read_value()) for q in queues]
        with tf.control_dependencies(puts):
            return [q.dequeue() for q in queues]


@variables("task", warm_up=2)
def tokens_carry_the_step(places, variable):
    """As SyncReplicasOptimizer hands out the step that it has just counted."""
    with places.ps():
        step = variable(0, trainable=False)
        tokens = tf.FIFOQueue(100, [tf.int32], [[]])
        counted = step.assign_add(1)
        put = after(counted, lambda: tokens.enqueue_many([tf.fill([2], step.read_value())]))
    with places.worker():
        return after(put, lambda: tokens.dequeue_many(2) * 1)


@variables("memory", warm_up=2)
def step_and_loss_of_training(places, variable):
    with places.ps():
        v, step = variable(1.), variable(0, trainable=False)
        loss = tf.square(v)
        train = _sgd().minimize(loss, global_step=step, var_list=[v])
        return [train, after(train, lambda: step.read_value() * 1),
                after(train, lambda: tf.square(v.read_value()))]


@variables("task", warm_up=2)
def momentum_seen_after_the_step(places, variable):
    with places.setter():
        v = variable([1., 2.])
        optimizer = tf.train.MomentumOptimizer(.1, .9)
        train = optimizer.minimize(tf.reduce_sum(tf.square(v)), var_list=[v])
        slot = optimizer.get_slot(v, "momentum")
        return after(train, lambda: [v.read_value() * 1., slot.read_value() * 1.])


@variables("task", warm_up=1)
def clipped_by_its_own_norm(places, variable):
    with places.setter():
        v = variable([3., 4.])
        train = _sgd(-1.).minimize(tf.reduce_sum(v * 1.), var_list=[v])
        clipped = after(train, lambda: v.assign(tf.clip_by_norm(v.read_value(), 5.)))
        return after(clipped, lambda: tf.norm(v.read_value()))


@variables("task", warm_up=1)
def swapped_variables(places, variable):
    with places.setter():
        a, b = variable(1.), variable(2.)
        old_a, old_b = a.read_value() * 1., b.read_value() * 1.
        with tf.control_dependencies([old_a, old_b]):
            both = tf.group(a.assign(old_b), b.assign(old_a))
        return after(both, lambda: [a.read_value() * 1., b.read_value() * 1.])


@variables("task", warm_up=1)
def target_network_follows(places, variable):
    with places.setter():
        main, target = variable([1., 2.]), variable([0., 0.], trainable=False)
        train = _sgd(.5).minimize(tf.reduce_sum(tf.square(main)), var_list=[main])
        moved = after(train, lambda: target.assign(
            .5 * target.read_value() + .5 * main.read_value()))
        return after(moved, lambda: [main.read_value() * 1., target.read_value() * 1.])


@variables("task", warm_up=1)
def scattered_then_gathered(places, variable):
    with places.setter():
        table = variable([[1.] * 4] * 6)
        update = tf.scatter_add(table, [1, 3], [[1.] * 4] * 2)
        rows = after(update, lambda: tf.gather(table.read_value(), [0, 1, 3]))
        return rows * 1.


@variables("task", warm_up=2)
def update_in_a_nested_branch(places, variable):
    with places.setter():
        v, n = variable(0.), variable(0, trainable=False)
        counted = n.assign_add(1)
        count = after(counted, lambda: n.read_value() * 1)
        step = tf.cond(count > 1, lambda: tf.cond(count > 2, lambda: tf.group(v.assign_add(10.)),
                                                  lambda: tf.group(v.assign_add(100.))),
                       lambda: tf.group(v.assign_add(1000.)))
        return after(step, lambda: v.read_value() * 1.)


@variables("task")
def read_in_every_turn_of_a_loop(places, variable):
    with places.setter():
        v = variable(1.)

        def body(i, total):
            added = after(total, lambda: v.assign_add(1.))
            return after(added, lambda: (i + 1, total + v.read_value()))
        return tf.while_loop(lambda i, t: i < 4, body, [0, 0.], parallel_iterations=1)[1]
