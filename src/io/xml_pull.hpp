// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/scan.hpp"

namespace tessera::io {

/// Reads XML one tag at a time, and no more of XML than data files need: no document types, so no
/// entities but the five that everybody knows and those that are numbers.
class XmlPull {
 public:
  enum class Event { open, close, end };

  explicit XmlPull(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  /// The next tag. What is wrong with the text is a LineProblem.
  Event next();

  /// The name of the tag, without a prefix such as "gml:".
  std::string_view name() const noexcept { return name_; }
  /// The value of an attribute of an opening tag; null where it has none.
  const std::string* attribute(std::string_view name) const;
  /// The text since the last tag.
  const std::string& text() const noexcept { return text_; }
  const char* at() const noexcept { return at_; }

 private:
  [[noreturn]] void fail(const std::string& problem) const;
  void take_text(const char* stop);
  void skip_past(std::string_view mark);
  bool looking_at(std::string_view mark) const;
  std::string_view take_name();
  void take_attributes();
  void append_unescaped(const char* begin, const char* stop, std::string& out) const;
  Event open_tag();
  Event close_tag();

  const char* at_;
  const char* end_;
  std::string_view name_;
  std::vector<std::pair<std::string_view, std::string>> attributes_;
  std::string text_;
  std::vector<std::string_view> open_;
  bool closes_at_once_ = false;
};

}  // namespace tessera::io
