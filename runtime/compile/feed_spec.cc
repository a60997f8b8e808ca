// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/feed_spec.h"

namespace tenon {

FeedSpec::FeedSpec(const Graph& graph, const Signature& signature) {
  for (const std::string& text : signature.feeds) {
    const auto name = ParseTensorName(text);
    const Node* node = graph.Find(name->node);
    Feed feed{text, BaseType(node->output_type(name->index)), PartialShape()};
    // Only a placeholder's shape is a promise; other tensors may be fed any.
    if (node->is_placeholder()) {
      feed.shape = node->attrs().GetOr("shape", PartialShape());
      // Old graphs write a scalar for "anything".
      if (feed.shape.rank() == 0) feed.shape = PartialShape();
    }
    feeds_.push_back(std::move(feed));
  }
}

Status FeedSpec::Check(const std::vector<Tensor>& feeds) const {
  if (feeds.size() != feeds_.size()) {
    return InvalidArgument("found ", feeds.size(), " feeds, wanted ", feeds_.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) TENON_RETURN_IF_ERROR(CheckOne(i, feeds[i]));
  return OkStatus();
}

Status FeedSpec::CheckOne(size_t i, const Tensor& feed) const {
  const Feed& f = feeds_[i];
  if (feed.dtype() != f.dtype) {
    if (!feed.valid()) return Annotate(feed.mistake(), StrCat("feed '", f.name, "'"));
    return InvalidArgument("feed '", f.name, "' is ", ToString(feed.dtype()), ", wanted ",
                           ToString(f.dtype));
  }
  if (!f.shape.IsCompatibleWith(feed.shape())) {
    return InvalidArgument("feed '", f.name, "' has shape ", feed.shape().ToString(), ", wanted ",
                           f.shape.ToString());
  }
  return OkStatus();
}

}  // namespace tenon
