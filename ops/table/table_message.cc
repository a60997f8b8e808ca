// SPDX-License-Identifier: Apache-2.0
#include "ops/table/table_message.h"

#include <chrono>

#include "proto/table.pb.h"

namespace tenon {
namespace {

template <typename Message>
Status ParseMessage(std::string_view text, Message* message) {
  if (message->ParseFromArray(text.data(), static_cast<int>(text.size()))) return OkStatus();
  return InvalidArgument("a text of ", text.size(), " bytes is no message ",
                         Message::descriptor()->name());
}

Status CheckPlace(const char* what, int64_t place, int64_t size) {
  if (place >= 0 && place < size) return OkStatus();
  return InvalidArgument("a table has no ", what, " ", place, ", only ", size);
}

StatusOr<TextState> StateOf(int64_t number) {
  TENON_RETURN_IF_ERROR(CheckPlace("state", number, kTextStates));
  return static_cast<TextState>(number);
}

void WriteReport(int64_t unit, const UnitReport& report, table::UnitReport* out) {
  out->set_unit(unit);
  out->set_began(static_cast<int>(report.began));
  out->set_lines(report.scan.lines);
  for (const auto& from : report.scan.from) {
    table::ScannedPart* const part = out->add_from();
    part->set_is_possible(from.has_value());
    if (!from) continue;
    part->set_end(static_cast<int>(from->end));
    part->set_first_record(from->first_record);
  }
  out->set_num_rows(report.num_rows);
  out->set_num_rejected(report.num_rejected);
  for (const RejectedRecord& r : report.rejected) {
    table::RejectedRecord* const record = out->add_rejected();
    record->set_kind(static_cast<int>(r.kind));
    record->set_byte(r.byte);
    record->set_line(r.line);
    record->set_fields(r.fields);
    record->set_text(r.text);
  }
  for (const ColumnReport& c : report.columns) {
    table::ColumnReport* const column = out->add_columns();
    column->set_is_text(c.is_text);
    column->set_has_leading_zeros(c.has_leading_zeros);
    column->set_num_missing(c.num_missing);
    column->set_num_numbers(c.num_numbers);
  }
}

StatusOr<UnitReport> ReadReport(const table::UnitReport& from) {
  UnitReport report;
  TENON_ASSIGN_OR_RETURN(report.began, StateOf(from.began()));
  report.scan.lines = from.lines();
  if (from.from_size() != kTextStates) {
    return InvalidArgument("a report has ", from.from_size(), " states, wanted ", kTextStates);
  }
  for (int i = 0; i < kTextStates; ++i) {
    if (!from.from(i).is_possible()) continue;
    TENON_ASSIGN_OR_RETURN(const TextState end, StateOf(from.from(i).end()));
    report.scan.from[i] = ScannedPart{end, from.from(i).first_record()};
  }
  report.num_rows = from.num_rows();
  report.num_rejected = from.num_rejected();
  for (const table::RejectedRecord& r : from.rejected()) {
    report.rejected.push_back(
        {static_cast<BadRecord::Kind>(r.kind()), r.byte(), r.line(), r.fields(), r.text()});
  }
  for (const table::ColumnReport& c : from.columns()) {
    report.columns.push_back(
        {c.is_text(), c.has_leading_zeros(), c.num_missing(), c.num_numbers()});
  }
  return report;
}

}  // namespace

std::string SerializeTablePlan(const TablePlan& plan) {
  table::Table message;
  for (const TableFile& f : plan.files) {
    table::File* const file = message.add_files();
    file->set_path(f.path);
    file->set_size(f.size);
    file->set_modified_ns(
        std::chrono::duration_cast<std::chrono::nanoseconds>(f.modified_at.time_since_epoch())
            .count());
    file->set_compressed(f.compressed);
  }
  const TableSchema& schema = plan.schema;
  message.set_delimiter(std::string(1, schema.format.delimiter));
  message.set_quotes(schema.format.quotes);
  for (const std::string& text : schema.format.missing) message.add_missing(text);
  for (const std::string& name : schema.header.names) message.add_names(name);
  message.set_header(schema.header.record);
  message.set_header_path(schema.header.path);
  for (const WantedColumn& c : schema.columns) {
    table::Column* const column = message.add_columns();
    column->set_place(c.place);
    column->set_as_text(c.as_text);
  }
  for (const TableUnit& u : plan.units) {
    table::Unit* const unit = message.add_units();
    unit->set_file(u.file);
    unit->set_begin(u.begin);
    unit->set_end(u.end);
  }
  message.set_memory(plan.memory);
  return message.SerializeAsString();
}

StatusOr<TablePlan> ParseTablePlan(std::string_view text) {
  table::Table message;
  TENON_RETURN_IF_ERROR(ParseMessage(text, &message));
  TablePlan plan;
  for (const table::File& f : message.files()) {
    const auto time = std::chrono::duration_cast<Clock::WallTime::duration>(
        std::chrono::nanoseconds(f.modified_ns()));
    plan.files.push_back({f.path(), f.size(), Clock::WallTime(time), f.compressed()});
  }
  if (message.delimiter().size() != 1) {
    return InvalidArgument("a table's delimiter must be one byte, found ",
                           message.delimiter().size());
  }
  TableSchema& schema = plan.schema;
  schema.format.delimiter = message.delimiter()[0];
  schema.format.quotes = message.quotes();
  schema.format.missing = {message.missing().begin(), message.missing().end()};
  schema.header.names = {message.names().begin(), message.names().end()};
  schema.header.record = message.header();
  schema.header.path = message.header_path();
  for (const table::Column& c : message.columns()) {
    TENON_RETURN_IF_ERROR(CheckPlace("column", c.place(), message.names_size()));
    schema.columns.push_back({c.place(), c.as_text()});
  }
  for (const table::Unit& u : message.units()) {
    TENON_RETURN_IF_ERROR(CheckPlace("file", u.file(), message.files_size()));
    if (u.begin() < 0 || u.end() < u.begin()) {
      return InvalidArgument("a unit of a table goes from byte ", u.begin(), " to ", u.end());
    }
    plan.units.push_back({u.file(), u.begin(), u.end()});
  }
  if (message.memory() < 0) return InvalidArgument("a table's memory is ", message.memory());
  plan.memory = message.memory();
  return plan;
}

std::string SerializeTableReading(const TableReading& reading) {
  table::Reading message;
  for (const TableShard::ReadUnit& u : reading.units) {
    table::Reading::Part* const part = message.add_parts();
    part->set_unit(u.unit);
    part->set_state(u.state ? static_cast<int>(*u.state) + 1 : 0);
  }
  for (const int64_t c : reading.as_text) message.add_as_text(c);
  return message.SerializeAsString();
}

StatusOr<TableReading> ParseTableReading(std::string_view text, int64_t num_units,
                                         int64_t num_columns) {
  table::Reading message;
  TENON_RETURN_IF_ERROR(ParseMessage(text, &message));
  TableReading reading;
  for (const table::Reading::Part& part : message.parts()) {
    TENON_RETURN_IF_ERROR(CheckPlace("unit", part.unit(), num_units));
    TableShard::ReadUnit unit = {part.unit(), std::nullopt};
    if (part.state() != 0) {
      TENON_ASSIGN_OR_RETURN(unit.state, StateOf(part.state() - 1));
    }
    reading.units.push_back(unit);
  }
  for (const int64_t column : message.as_text()) {
    TENON_RETURN_IF_ERROR(CheckPlace("column", column, num_columns));
    reading.as_text.push_back(column);
  }
  return reading;
}

std::string SerializeReports(const TableShard& shard, const TableReading& reading) {
  table::Reports message;
  for (const TableShard::ReadUnit& u : reading.units) {
    WriteReport(u.unit, shard.report(u.unit), message.add_reports());
  }
  return message.SerializeAsString();
}

std::string SerializeRejected(const std::vector<RejectedRecord>& rejected) {
  UnitReport report;
  report.num_rejected = static_cast<int64_t>(rejected.size());
  report.rejected = rejected;
  table::Reports message;
  WriteReport(0, report, message.add_reports());
  return message.SerializeAsString();
}

StatusOr<std::vector<PlacedReport>> ParseReports(std::string_view text) {
  table::Reports message;
  TENON_RETURN_IF_ERROR(ParseMessage(text, &message));
  std::vector<PlacedReport> reports;
  for (const table::UnitReport& r : message.reports()) {
    TENON_ASSIGN_OR_RETURN(UnitReport report, ReadReport(r));
    reports.push_back({r.unit(), std::move(report)});
  }
  return reports;
}

}  // namespace tenon
