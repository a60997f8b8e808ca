// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The shortest text that is read as this double again: "0.1", "1e-300", "nan", "-inf".
std::string ShortestText(double value);

/// Text as JSON writes it, with its quotes; bytes that are no UTF-8 become U+FFFD.
std::string JsonText(std::string_view text);

/// Whether a text is UTF-8, as JSON must be.
bool IsUtf8(std::string_view text);

/// An object of JSON under way, with its members in the order in which they are added. What JSON
/// has no number for, NaN and infinities, is left out.
class JsonObject {
 public:
  void Add(std::string_view key, double value);
  void Add(std::string_view key, int64_t value);
  void Add(std::string_view key, bool value) { AddRaw(key, value ? "true" : "false"); }
  void Add(std::string_view key, std::string_view text) { AddRaw(key, JsonText(text)); }
  void Add(std::string_view key, const char* text) { Add(key, std::string_view(text)); }
  void Add(std::string_view key, const JsonObject& object);
  void Add(std::string_view key, const std::vector<std::string>& texts);
  /// Numbers, all finite.
  void Add(std::string_view key, const std::vector<double>& values);
  /// An object a line, each in one.
  void Add(std::string_view key, const std::vector<JsonObject>& objects);

  /// A member a line.
  std::string Text() const { return TextAt(0); }

 private:
  struct Member {
    std::string key, value;
    std::vector<JsonObject> object;  // or one
  };
  void AddRaw(std::string_view key, std::string value);
  std::string TextAt(size_t depth) const;
  std::string TextInLine() const;

  std::vector<Member> members_;
};

}  // namespace tenon
