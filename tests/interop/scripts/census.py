# SPDX-License-Identifier: Apache-2.0
"""Made people with an income, and input functions of them: what the estimator scripts train on."""
import numpy as np
import tensorflow.compat.v1 as tf

EDUCATIONS = ["primary", "secondary", "bachelor", "master"]
JOBS = [f"job{i}" for i in range(20)]


def people(count, seed):
    """Features and labels: age and education in a cross, and hours, decide who earns much."""
    random = np.random.RandomState(seed)
    age = random.randint(18, 80, count)
    education = random.randint(0, len(EDUCATIONS), count)
    hours = random.randint(10, 60, count).astype(np.float32)
    score = ((age // 20) % 2 == education % 2) * 2. + hours / 30 + .2 * random.randn(count)
    return {"age": age.astype(np.float32), "education": np.array(EDUCATIONS)[education],
            "job": np.array(JOBS)[random.randint(0, len(JOBS), count)], "hours": hours}, \
        (score > 2.2).astype(np.int64)


def train_input():
    return tf.data.Dataset.from_tensor_slices(people(1000, 1)).shuffle(1000, seed=1).repeat().batch(50)


def test_input():
    return tf.data.Dataset.from_tensor_slices(people(400, 2)).batch(100)


def columns():
    """Wide columns, crosses among them, and deep ones."""
    column = tf.feature_column
    age, hours = column.numeric_column("age"), column.numeric_column("hours")
    buckets = column.bucketized_column(age, [20, 30, 40, 50, 60, 70])
    education = column.categorical_column_with_vocabulary_list("education", EDUCATIONS)
    job = column.categorical_column_with_hash_bucket("job", 50)
    wide = [buckets, education, job, column.crossed_column([buckets, "education"], 200),
            column.crossed_column(["education", "job"], 300),
            column.bucketized_column(hours, [15, 20, 25, 30, 35, 40, 45, 50])]
    deep = [column.numeric_column("age", normalizer_fn=lambda x: (x - 50) / 30),
            column.numeric_column("hours", normalizer_fn=lambda x: (x - 30) / 20),
            column.indicator_column(education), column.embedding_column(job, 4)]
    return wide, deep
