// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>

#include <nlohmann/json.hpp>

namespace tessera::app {
namespace {

using Library = nlohmann::ordered_json;

Library converted(const Json& json) {
  switch (json.kind()) {
    case Json::Kind::null: return nullptr;
    case Json::Kind::boolean: return json.boolean();
    case Json::Kind::integer: return json.integer();
    case Json::Kind::natural: return json.natural();
    case Json::Kind::real: return json.real();
    case Json::Kind::text: return json.text();
    case Json::Kind::array: {
      Library array = Library::array();
      for (const Json& item : json.items()) array.push_back(converted(item));
      return array;
    }
    case Json::Kind::object: break;
  }
  Library object = Library::object();
  for (std::size_t i = 0; i < json.keys().size(); ++i) {
    object.push_back({json.keys()[i], converted(json.items()[i])});
  }
  return object;
}

bool is_member(const Json& json) {
  return json.kind() == Json::Kind::array && json.items().size() == 2 &&
         json.items()[0].kind() == Json::Kind::text;
}

}  // namespace

Json::Json(std::initializer_list<Json> items) : kind_(Kind::array) {
  if (!std::all_of(items.begin(), items.end(), is_member)) {
    items_ = items;
    return;
  }
  kind_ = Kind::object;
  for (const Json& item : items) (*this)[item.items_[0].text_] = item.items_[1];
}

Json Json::array() {
  Json json;
  json.kind_ = Kind::array;
  return json;
}

Json Json::object() {
  Json json;
  json.kind_ = Kind::object;
  return json;
}

Json& Json::operator[](const std::string& key) {
  kind_ = Kind::object;
  const auto found = std::find(keys_.begin(), keys_.end(), key);
  if (found != keys_.end()) return items_[static_cast<std::size_t>(found - keys_.begin())];
  keys_.push_back(key);
  return items_.emplace_back();
}

void Json::update(const Json& other) {
  for (std::size_t i = 0; i < other.keys_.size(); ++i) (*this)[other.keys_[i]] = other.items_[i];
}

std::string Json::written() const {
  constexpr bool ascii_only = true;
  return converted(*this).dump(2, ' ', ascii_only, Library::error_handler_t::replace) + '\n';
}

bool holds_json(const std::string& path) {
  std::ifstream file(path);
  return file.peek() == std::ifstream::traits_type::eof() || nlohmann::json::accept(file);
}

}  // namespace tessera::app
