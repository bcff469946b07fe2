// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/scan.hpp"

namespace tessera::io {

/// How the lines of a table are cut into fields: at a character, or at runs of blanks. Blanks
/// around a field do not count; a field may stand in double quotes, in which "" is one quote.
class FieldScanner {
 public:
  explicit FieldScanner(char separator = ' ') : separator_(separator) {}

  char separator() const noexcept { return separator_; }
  bool by_blanks() const noexcept { return separator_ == ' '; }
  bool pads(char c) const noexcept { return is_blank(c) && c != separator_; }
  /// True for what comes after a field.
  bool ends(char c) const noexcept { return c == separator_ || c == '\n' || is_blank(c); }

  const char* skip_padding(const char* at, const char* end) const {
    if (by_blanks()) return skip_blanks(at, end);
    while (at != end && pads(*at)) ++at;
    return at;
  }

  /// Past the separator after a field. Null at the end of the line.
  const char* next_field(const char* at, const char* end) const {
    at = skip_padding(at, end);
    if (at == end || *at == '\n') return nullptr;
    if (by_blanks()) return at;
    return *at == separator_ ? at + 1 : fail_after_field(at);
  }

  /// The field at `at`, unquoted with the help of `scratch`, and the place after it.
  const char* scan(const char* at, const char* end, std::string& scratch,
                   std::string_view& field) const;

  /// All fields of one line. Those with quotes inside are kept in `scratch`.
  void split(std::string_view line, std::vector<std::string>& fields) const;

 private:
  const char* scan_quoted(const char* at, const char* end, std::string& scratch,
                          std::string_view& field) const;
  [[noreturn]] static const char* fail_after_field(const char* at);

  char separator_;
};

/// True for blank lines and those that begin with '#', '%' or "//". `at` is past the line's blanks.
inline bool is_remark(const char* at, const char* end) {
  return at == end || *at == '\n' || *at == '#' || *at == '%' ||
         (*at == '/' && end - at > 1 && at[1] == '/');
}

/// What the first lines of a table say about all of it.
struct TableLayout {
  FieldScanner fields;
  std::vector<std::string> header;  ///< empty: there is none
  std::int64_t begin = 0;           ///< where the first line with data begins, in `head`
  std::int64_t columns = 0;         ///< of that line
  std::vector<std::vector<std::string>> sample;  ///< the first lines with data

  bool has_header() const noexcept { return !header.empty(); }
  /// What parts its columns and whether it has a header, in words.
  std::string form() const;
  /// The name of a column, or its number from 1 where it has none.
  std::string name_of(std::int64_t column) const;
  /// The same in a sentence: "'age'", "column 2".
  std::string named(std::int64_t column) const;
  /// The column of this name or number (from 1); -1 where there is none.
  std::int64_t find(std::string_view name) const;
  /// The same; throws where there is none, or where two have this name. `option` is how it was
  /// asked for, and `alternative` what it may say instead.
  std::int64_t require(std::string_view name, const char* option, const std::string& path,
                       const char* alternative = "") const;

 private:
  bool has_name(std::int64_t column) const noexcept;
};

/// What tells a header from a first row of data.
struct HeaderWords {
  /// What columns are usually called, in lower case; no number stands beside them.
  std::vector<std::string_view> known;
  /// What columns of ids are called: numbers beside them that all differ count columns.
  std::vector<std::string_view> ids = {};
  /// Names that the user gives, which need no other sign.
  std::vector<std::string> given = {};

  HeaderWords(std::vector<std::string_view> known_words = {}) : known(std::move(known_words)) {}

  /// Adds what an option says of a column: nothing, "none" and numbers of columns are no names.
  void add_given(const std::string& option);
};

/// @param head  the begin of the text, of whole lines
/// @param separator  0: found out
/// @param header  absent: found out: a line that has one of the words, or a word above a column
///                that holds numbers or truth values wherever it holds anything
TableLayout find_layout(std::string_view head, char separator, std::optional<bool> header,
                        const HeaderWords& words, const std::string& path);

bool is_integer(std::string_view text);
bool is_real(std::string_view text);
std::string lower_case(std::string_view text);

}  // namespace tessera::io
