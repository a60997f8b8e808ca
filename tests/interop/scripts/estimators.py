#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Estimators, premade and of one's own: trained, evaluated and asked. Where they run says TF_CONFIG."""
import argparse
import sys

import numpy as np
import tensorflow.compat.v1 as tf

import census

tf.disable_v2_behavior()


def own_model(features, labels, mode, params):
    """A model function: one hidden layer over all columns."""
    net = tf.feature_column.input_layer(features, params["columns"])
    net = tf.layers.dense(net, 32, activation=tf.nn.relu)
    net = tf.layers.batch_normalization(net, momentum=.9,
                                        training=mode == tf.estimator.ModeKeys.TRAIN)
    logits = tf.layers.dense(net, 1)
    probability = tf.sigmoid(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logistic": probability})
    loss = tf.losses.sigmoid_cross_entropy(labels[:, None], logits)
    accuracy = tf.metrics.accuracy(labels[:, None], tf.round(probability))
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    tf.summary.scalar("accuracy", accuracy[1])
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        step = tf.train.AdamOptimizer(.01).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def make(model, config):
    wide, deep = census.columns()
    if model == "linear":
        return tf.estimator.LinearClassifier(wide, optimizer=tf.train.FtrlOptimizer(.2), config=config)
    if model == "deep":
        return tf.estimator.DNNClassifier([32, 16], deep, optimizer=tf.train.AdagradOptimizer(.1),
                                          dropout=.1, config=config)
    if model == "wide_deep":
        return tf.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=wide, linear_optimizer=tf.train.FtrlOptimizer(.2),
            dnn_feature_columns=deep, dnn_optimizer=tf.train.AdagradOptimizer(.1), dnn_hidden_units=[32, 16],
            config=config)
    return tf.estimator.Estimator(own_model, params={"columns": deep}, config=config)


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=["linear", "deep", "wide_deep", "own"], required=True)
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--train_steps", type=int, default=200)
    parser.add_argument("--train_and_evaluate", action="store_true")
    flags = parser.parse_args(argv)

    config = tf.estimator.RunConfig(model_dir=flags.model_dir, tf_random_seed=1, save_checkpoints_steps=100,
                                    save_summary_steps=50, log_step_count_steps=50)
    estimator = make(flags.model, config)
    if flags.train_and_evaluate:
        tf.estimator.train_and_evaluate(
            estimator, tf.estimator.TrainSpec(census.train_input, max_steps=flags.train_steps),
            tf.estimator.EvalSpec(census.test_input, steps=None, start_delay_secs=0, throttle_secs=0))
    else:
        estimator.train(census.train_input, max_steps=flags.train_steps)
    if config.task_type in ("ps", "evaluator") or not config.is_chief:
        return {}
    metrics = estimator.evaluate(census.test_input)
    _, labels = census.people(400, 2)
    probabilities = np.ravel([p["logistic"] for p in estimator.predict(census.test_input)])
    return {"accuracy": metrics["accuracy"], "loss": metrics["loss"], "global_step": metrics["global_step"],
            "predicted": np.mean((probabilities > .5) == labels), "master": config.master}


if __name__ == "__main__":
    print("result", main(sys.argv[1:]))
