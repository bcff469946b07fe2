// SPDX-License-Identifier: Apache-2.0
#include "io/xml_pull.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "io/file.hpp"

namespace tessera::io {
namespace {

constexpr std::size_t max_depth = 64;

bool is_space(char c) { return is_blank(c) || c == '\n'; }

bool ends_name(char c) { return is_space(c) || c == '=' || c == '>' || c == '/' || c == '<'; }

std::string_view without_prefix(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

void append_utf8(std::uint32_t code, std::string& out) {
  constexpr std::uint32_t first_marks[] = {0, 0xC0, 0xE0, 0xF0};
  const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  out += static_cast<char>(first_marks[more] | code >> 6 * more);
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> 6 * i & 0x3F));
}

/// What the entities stand for that everybody knows.
constexpr std::pair<std::string_view, char> entities[] = {
    {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};

}  // namespace

void XmlPull::fail(const std::string& problem) const { throw LineProblem{at_, problem}; }

bool XmlPull::looking_at(std::string_view mark) const {
  return static_cast<std::size_t>(end_ - at_) >= mark.size() &&
         std::string_view(at_, mark.size()) == mark;
}

void XmlPull::skip_past(std::string_view mark) {
  const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
  const std::size_t found = rest.find(mark);
  if (found == std::string_view::npos) fail(fmt::format("'{}' is missing", mark));
  at_ += found + mark.size();
}

void XmlPull::append_unescaped(const char* begin, const char* stop, std::string& out) const {
  while (begin != stop) {
    const char* const mark = std::find(begin, stop, '&');
    out.append(begin, mark);
    if (mark == stop) return;
    const char* const semicolon = std::find(mark, std::min(stop, mark + 12), ';');
    if (semicolon == stop || *semicolon != ';') fail("'&' stands alone: it must be written &amp;");
    const std::string_view name(mark + 1, static_cast<std::size_t>(semicolon - mark - 1));
    const auto* const known =
        std::find_if(std::begin(entities), std::end(entities),
                     [&](const auto& entity) { return entity.first == name; });
    if (known != std::end(entities)) {
      out += known->second;
    } else if (name.size() > 1 && name[0] == '#') {
      const bool hexadecimal = name[1] == 'x';
      const char* const first = name.data() + (hexadecimal ? 2 : 1);
      const char* const last = name.data() + name.size();
      std::uint32_t code = 0;
      const auto [end, problem] = std::from_chars(first, last, code, hexadecimal ? 16 : 10);
      if (problem != std::errc() || end != last || first == last || code > 0x10FFFF) {
        fail(fmt::format("'&{};' is no character", name));
      }
      append_utf8(code, out);
    } else {
      fail(fmt::format("the entity '&{};' is not known here", name));
    }
    begin = semicolon + 1;
  }
}

void XmlPull::take_text(const char* stop) {
  append_unescaped(at_, stop, text_);
  at_ = stop;
}

std::string_view XmlPull::take_name() {
  const char* const begin = at_;
  while (at_ != end_ && !ends_name(*at_)) ++at_;
  if (at_ == begin) fail("a name is missing");
  return {begin, static_cast<std::size_t>(at_ - begin)};
}

void XmlPull::take_attributes() {
  attributes_.clear();
  for (;;) {
    while (at_ != end_ && is_space(*at_)) ++at_;
    if (at_ == end_) fail("a tag is not closed");
    if (*at_ == '>' || *at_ == '/') return;
    const std::string_view name = without_prefix(take_name());
    while (at_ != end_ && is_space(*at_)) ++at_;
    if (at_ == end_ || *at_ != '=') fail(fmt::format("attribute '{}' has no value", name));
    ++at_;
    while (at_ != end_ && is_space(*at_)) ++at_;
    if (at_ == end_ || (*at_ != '"' && *at_ != '\'')) {
      fail(fmt::format("the value of attribute '{}' is not in quotes", name));
    }
    const char quote = *at_++;
    const char* const stop = std::find(at_, end_, quote);
    if (stop == end_) fail(fmt::format("the value of attribute '{}' does not end", name));
    attributes_.emplace_back(name, std::string());
    append_unescaped(at_, stop, attributes_.back().second);
    at_ = stop + 1;
  }
}

XmlPull::Event XmlPull::open_tag() {
  ++at_;
  name_ = without_prefix(take_name());
  take_attributes();
  closes_at_once_ = *at_ == '/';
  if (closes_at_once_ && (++at_ == end_ || *at_ != '>')) fail("a tag is not closed");
  ++at_;
  if (open_.size() >= max_depth) fail("tags are nested too deeply");
  open_.push_back(name_);
  return Event::open;
}

XmlPull::Event XmlPull::close_tag() {
  at_ += 2;
  const std::string_view name = without_prefix(take_name());
  while (at_ != end_ && is_space(*at_)) ++at_;
  if (at_ == end_ || *at_ != '>') fail("a tag is not closed");
  ++at_;
  if (open_.empty() || open_.back() != name) fail(fmt::format("'</{}>' closes nothing", name));
  open_.pop_back();
  name_ = name;
  return Event::close;
}

XmlPull::Event XmlPull::next() {
  if (closes_at_once_) {
    closes_at_once_ = false;
    text_.clear();
    open_.pop_back();
    return Event::close;
  }
  text_.clear();
  for (;;) {
    const char* const tag = std::find(at_, end_, '<');
    take_text(tag);
    if (tag == end_) {
      if (!open_.empty()) fail(fmt::format("the file ends inside of '{}'", open_.back()));
      return Event::end;
    }
    if (looking_at("<!--")) {
      skip_past("-->");
    } else if (looking_at("<![CDATA[")) {
      at_ += 9;
      const char* const begin = at_;
      skip_past("]]>");
      text_.append(begin, at_ - 3);
    } else if (looking_at("<?")) {
      skip_past("?>");
    } else if (looking_at("<!")) {
      fail("document types are not read");
    } else if (looking_at("</")) {
      return close_tag();
    } else {
      return open_tag();
    }
  }
}

const std::string* XmlPull::attribute(std::string_view name) const {
  const auto found = std::find_if(attributes_.begin(), attributes_.end(),
                                  [&](const auto& attribute) { return attribute.first == name; });
  return found == attributes_.end() ? nullptr : &found->second;
}

}  // namespace tessera::io
