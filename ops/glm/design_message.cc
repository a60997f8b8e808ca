// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/design_message.h"

#include "proto/table.pb.h"

namespace tenon {
namespace {

void WriteNumber(const GlmNumber& number, table::Number* out) {
  for (const NumericExpression::Step& s : number.expression.steps) {
    table::Step* const step = out->add_steps();
    step->set_op(static_cast<int>(s.op));
    step->set_index(s.index);
    step->set_number(s.number);
  }
  for (const int64_t c : number.columns) out->add_columns(c);
  out->set_center(number.center);
  out->set_scale(number.scale);
}

/// The names of an expression's columns stay with whoever wrote the message.
StatusOr<GlmNumber> ReadNumber(const table::Number& from) {
  GlmNumber number;
  for (const table::Step& s : from.steps()) {
    if (s.op() < 0 || s.op() > static_cast<int>(NumericExpression::Op::kAbs)) {
      return InvalidArgument("a number has no step ", s.op());
    }
    number.expression.steps.push_back(
        {static_cast<NumericExpression::Op>(s.op()), s.index(), s.number()});
  }
  number.columns = {from.columns().begin(), from.columns().end()};
  number.center = from.center();
  number.scale = from.scale();
  return number;
}

}  // namespace

std::string SerializeDesign(const GlmDesign& design) {
  table::Design message;
  message.set_family(std::string(NameOf(design.family)));
  message.set_link(std::string(NameOf(design.link)));
  WriteNumber(design.response.number, message.mutable_response());
  WriteNumber(design.response.failures, message.mutable_failures());
  message.set_response_column(design.response.column);
  message.set_response_code(design.response.code);
  message.set_weight_column(design.weight_column);
  for (const GlmNumber& number : design.offsets) WriteNumber(number, message.add_offsets());
  for (const GlmNumber& number : design.numbers) WriteNumber(number, message.add_numbers());
  for (const GlmFactor& f : design.factors) {
    table::Factor* const factor = message.add_factors();
    factor->set_column(f.column);
    for (const int32_t level : f.level_of_code) factor->add_level_of_code(level);
    WriteNumber(f.number, factor->mutable_number());
    for (const double b : f.breaks) factor->add_breaks(b);
    factor->set_num_levels(f.num_levels);
  }
  for (const GlmGroup& g : design.groups) {
    table::Group* const group = message.add_groups();
    group->set_number(g.number);
    for (const int64_t f : g.factors) group->add_factors(f);
  }
  return message.SerializeAsString();
}

StatusOr<GlmDesign> ParseDesign(std::string_view text) {
  table::Design message;
  if (!message.ParseFromArray(text.data(), static_cast<int>(text.size()))) {
    return InvalidArgument("a text of ", text.size(), " bytes is no message Design");
  }
  GlmDesign design;
  TENON_ASSIGN_OR_RETURN(design.family, ParseGlmFamily(message.family()));
  TENON_ASSIGN_OR_RETURN(design.link, ParseGlmLink(message.link()));
  TENON_ASSIGN_OR_RETURN(design.response.number, ReadNumber(message.response()));
  TENON_ASSIGN_OR_RETURN(design.response.failures, ReadNumber(message.failures()));
  design.response.column = message.response_column();
  design.response.code = message.response_code();
  design.weight_column = message.weight_column();
  for (const table::Number& n : message.offsets()) {
    TENON_ASSIGN_OR_RETURN(GlmNumber number, ReadNumber(n));
    design.offsets.push_back(std::move(number));
  }
  for (const table::Number& n : message.numbers()) {
    TENON_ASSIGN_OR_RETURN(GlmNumber number, ReadNumber(n));
    design.numbers.push_back(std::move(number));
  }
  for (const table::Factor& f : message.factors()) {
    GlmFactor factor;
    factor.column = f.column();
    factor.level_of_code = {f.level_of_code().begin(), f.level_of_code().end()};
    TENON_ASSIGN_OR_RETURN(factor.number, ReadNumber(f.number()));
    factor.breaks = {f.breaks().begin(), f.breaks().end()};
    factor.num_levels = f.num_levels();
    design.factors.push_back(std::move(factor));
  }
  for (const table::Group& g : message.groups()) {
    design.groups.push_back({g.number(), {g.factors().begin(), g.factors().end()}});
  }
  return design;
}

}  // namespace tenon
