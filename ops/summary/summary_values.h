// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/op/kernel.h"

// What summary ops show, as values of a Summary message. InvalidArgument for what cannot be shown.

namespace tenon {

class Summary;

/// Each number under its tag, the two in one shape.
Status AddScalars(const Tensor& tags, const Tensor& values, Summary* summary);
/// A histogram of real numbers or truth values; `owner` is whose they are, for messages.
Status AddHistogram(std::string_view tag, const Tensor& values, std::string_view owner,
                    Summary* summary);
/// Images [batch, height, width, channels], `most` of them, where `bad_color` takes the place of
/// colors that are not finite.
Status AddImages(std::string_view tag, const Tensor& images, const Tensor& bad_color, int64_t most,
                 Summary* summary);
/// Sounds [batch, frames] or [batch, frames, channels] of `rate` frames a second, `most` of them.
Status AddSounds(std::string_view tag, const Tensor& sounds, float rate, int64_t most,
                 Summary* summary);
/// The tensor as it is; `metadata` is a serialized SummaryMetadata.
Status AddTensor(std::string_view tag, const Tensor& value, std::string_view metadata,
                 Summary* summary);

}  // namespace tenon
