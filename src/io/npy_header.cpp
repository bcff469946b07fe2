// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "io/file.hpp"
#include "io/npy.hpp"

namespace tessera::io {
namespace {

/// NumPy itself allows no more.
constexpr std::size_t max_dimensions = 32;

/// Walks over the one kind of Python text that NumPy writes: a dictionary of a string, a truth
/// value and a tuple of integers.
class DictionaryParser {
 public:
  DictionaryParser(std::string_view text, const std::string& where) : rest_(text), where_(where) {}

  NpyHeader parse() {
    NpyHeader header;
    std::set<std::string_view> seen;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      if (!seen.insert(key).second) fail();
      expect(':');
      if (key == "descr") {
        header.type = type();
      } else if (key == "fortran_order") {
        header.fortran_order = truth_value();
      } else if (key == "shape") {
        header.shape = tuple();
      } else {
        fail();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!rest_.empty() || seen.size() != 3) fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const { damaged(where_, "the header of the array is malformed"); }

  void skip_space() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0) {
      rest_.remove_prefix(1);
    }
  }
  bool accept(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::string_view string() {
    skip_space();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) fail();
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) fail();
    const std::string_view content = rest_.substr(1, end - 1);
    if (content.find('\\') != std::string_view::npos) fail();
    rest_.remove_prefix(end + 1);
    return content;
  }

  std::string type() {
    skip_space();
    if (rest_.starts_with('[')) {
      throw Error(ErrorCode::unsupported, "the array has several fields per element", where_,
                  "save each field as an array of its own");
    }
    return std::string(string());
  }

  bool truth_value() {
    if (accept_word("True")) return true;
    if (!accept_word("False")) fail();
    return false;
  }

  std::int64_t integer() {
    skip_space();
    std::int64_t value = 0;
    const char* const end = rest_.data() + rest_.size();
    const auto [stop, problem] = std::from_chars(rest_.data(), end, value);
    if (problem != std::errc() || value < 0) fail();
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
    accept('L');  // Python 2 wrote long integers so
    return value;
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      if (values.size() == max_dimensions) fail();
      values.push_back(integer());
      if (!accept(',')) {
        if (values.size() == 1) fail();  // "(3)" is a number, not a tuple
        expect(')');
        break;
      }
    }
    return values;
  }

  std::string_view rest_;
  const std::string& where_;
};

}  // namespace

NpyHeader parse_npy_dictionary(std::string_view text, const std::string& where) {
  return DictionaryParser(text, where).parse();
}

std::string npy_header(const std::string& type, const std::vector<std::int64_t>& shape) {
  std::string tuple;
  for (const std::int64_t extent : shape) tuple += fmt::format("{}, ", extent);
  if (shape.size() > 1) tuple.resize(tuple.size() - 2);
  if (shape.size() == 1) tuple.pop_back();
  std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, tuple);
  constexpr std::size_t prefix = 10;
  constexpr std::size_t alignment = 64;
  const std::size_t length =
      (prefix + dictionary.size() + 1 + alignment - 1) / alignment * alignment;
  dictionary.resize(length - prefix - 1, ' ');
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>((length - prefix) & 0xFF);
  header += static_cast<char>((length - prefix) >> 8);
  return header + dictionary + '\n';
}

}  // namespace tessera::io
