// SPDX-License-Identifier: Apache-2.0
#include "train/glm/text/json_text.h"

#include <utf8proc.h>

#include <charconv>
#include <cmath>

#include "absl/strings/str_format.h"
#include "core/base/strings.h"

namespace tenon {

std::string ShortestText(double value) {
  char buffer[32];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

std::string JsonText(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t size =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + i,
                         static_cast<utf8proc_ssize_t>(text.size() - i), &code);
    if (size <= 0) {
      out += "\xEF\xBF\xBD";
      ++i;
      continue;
    }
    if (code == '"' || code == '\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code == '\n') {
      out += "\\n";
    } else if (code < ' ') {
      StrAppend(&out, absl::StrFormat("\\u%04x", code));
    } else {
      out += text.substr(i, static_cast<size_t>(size));
    }
    i += static_cast<size_t>(size);
  }
  return out + "\"";
}

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t size =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + i,
                         static_cast<utf8proc_ssize_t>(text.size() - i), &code);
    if (size <= 0) return false;
    i += static_cast<size_t>(size);
  }
  return true;
}

void JsonObject::Add(std::string_view key, double value) {
  if (std::isfinite(value)) AddRaw(key, ShortestText(value));
}

void JsonObject::Add(std::string_view key, int64_t value) { AddRaw(key, StrCat(value)); }

void JsonObject::Add(std::string_view key, const JsonObject& object) {
  members_.push_back({std::string(key), "", {object}});
}

void JsonObject::Add(std::string_view key, const std::vector<std::string>& texts) {
  std::vector<std::string> written;
  for (const std::string& text : texts) written.push_back(JsonText(text));
  AddRaw(key, StrCat("[", Join(written, ", "), "]"));
}

void JsonObject::Add(std::string_view key, const std::vector<double>& values) {
  std::vector<std::string> written;
  for (const double value : values) written.push_back(ShortestText(value));
  AddRaw(key, StrCat("[", Join(written, ", "), "]"));
}

void JsonObject::Add(std::string_view key, const std::vector<JsonObject>& objects) {
  std::vector<std::string> written;
  for (const JsonObject& object : objects) written.push_back(StrCat("    ", object.TextInLine()));
  AddRaw(key, objects.empty() ? "[]" : StrCat("[\n", Join(written, ",\n"), "\n  ]"));
}

std::string JsonObject::TextInLine() const {
  std::vector<std::string> parts;
  for (const Member& member : members_) {
    parts.push_back(StrCat(JsonText(member.key), ": ",
                           member.object.empty() ? member.value : member.object[0].TextInLine()));
  }
  return StrCat("{", Join(parts, ", "), "}");
}

void JsonObject::AddRaw(std::string_view key, std::string value) {
  members_.push_back({std::string(key), std::move(value), {}});
}

std::string JsonObject::TextAt(size_t depth) const {
  if (members_.empty()) return "{}";
  const std::string indent(2 * depth + 2, ' ');
  std::vector<std::string> lines;
  for (const Member& member : members_) {
    const std::string value =
        member.object.empty() ? member.value : member.object[0].TextAt(depth + 1);
    lines.push_back(StrCat(indent, JsonText(member.key), ": ", value));
  }
  return StrCat("{\n", Join(lines, ",\n"), "\n", std::string(2 * depth, ' '), "}");
}

}  // namespace tenon
