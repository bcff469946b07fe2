// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace tessera::app {

/// A report as data, to be written. Keeps its keys in the order they were added, so that reports
/// read well and compare as text. The JSON library writes it, in json.cpp alone: its headers take
/// the compiler longer than a verb itself.
class Json {
 public:
  enum class Kind { null, boolean, integer, natural, real, text, array, object };

  Json() = default;
  Json(std::nullptr_t) {}
  Json(std::same_as<bool> auto value) : kind_(Kind::boolean), boolean_(value) {}
  Json(std::signed_integral auto value) : kind_(Kind::integer), integer_(value) {}
  template <std::unsigned_integral Natural>
  requires(!std::same_as<Natural, bool>) Json(Natural value)
      : kind_(Kind::natural), natural_(value) {}
  Json(std::floating_point auto value) : kind_(Kind::real), real_(value) {}
  Json(std::string text) : kind_(Kind::text), text_(std::move(text)) {}
  Json(const char* text) : Json(std::string(text)) {}
  template <class Value>
  Json(const std::vector<Value>& values) : kind_(Kind::array) {
    for (const Value& value : values) items_.emplace_back(value);
  }
  /// Pairs that begin with a text are the members of an object, everything else is an array.
  Json(std::initializer_list<Json> items);

  static Json array();
  static Json object();

  Kind kind() const { return kind_; }
  bool boolean() const { return boolean_; }
  std::int64_t integer() const { return integer_; }
  std::uint64_t natural() const { return natural_; }
  double real() const { return real_; }
  const std::string& text() const { return text_; }
  /// The values of an object's keys, or what is in an array.
  const std::vector<Json>& items() const { return items_; }
  const std::vector<std::string>& keys() const { return keys_; }

  /// The value of a key, which is added where it is missing. Makes null an object.
  Json& operator[](const std::string& key);
  /// Sets these keys, and leaves all others.
  void update(const Json& other);

  void push_back(Json item) { items_.push_back(std::move(item)); }
  Json& back() { return items_.back(); }

  /// In lines, two more spaces for each level. ASCII alone, so that it may go to a terminal: other
  /// characters are "\\u202e", and bytes that are no UTF-8 are replaced.
  std::string written() const;

 private:
  Kind kind_ = Kind::null;
  bool boolean_ = false;
  std::int64_t integer_ = 0;
  std::uint64_t natural_ = 0;
  double real_ = 0;
  std::string text_;
  std::vector<std::string> keys_;
  std::vector<Json> items_;
};

/// Whether the file holds JSON, or nothing.
bool holds_json(const std::string& path);

}  // namespace tessera::app
