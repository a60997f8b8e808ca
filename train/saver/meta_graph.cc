// SPDX-License-Identifier: Apache-2.0
#include "train/saver/meta_graph.h"

#include "core/proto/proto_io_graph.h"
#include "proto/meta_graph.pb.h"
#include "train/saver/collections.h"

namespace tenon {

Status ExportMetaGraph(const Saver& saver, MetaGraphDef* out) {
  out->Clear();
  // Empty, but there: what tells the message from a graph alone.
  out->mutable_meta_info_def();
  TENON_RETURN_IF_ERROR(GraphToProto(saver.graph(), out->mutable_graph_def()));
  if (!saver.empty()) saver.ToProto(out->mutable_saver_def());
  WriteCollections(saver.graph(), out);
  return OkStatus();
}

}  // namespace tenon
