// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/saver/saver.h"

namespace tenon {

class MetaGraphDef;

/// The graph of `saver` with what is needed to go on with it (tf.train.export_meta_graph, the
/// .meta file of a checkpoint): the SaverDef, and of the collections the variables, trainable and
/// local ones, "global_step", "losses", "regularization_losses" and "update_ops". TensorFlow's
/// import_meta_graph reads it. Replaces `*out`. Fails with the first mistake made in building the
/// graph, which nobody may change meanwhile.
Status ExportMetaGraph(const Saver& saver, MetaGraphDef* out);

}  // namespace tenon
