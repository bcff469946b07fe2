// SPDX-License-Identifier: Apache-2.0
#include "io/matrix_market_header.hpp"

#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/dataset_arrays.hpp"
#include "io/table_layout.hpp"
#include "io/text.hpp"

namespace tessera::io {
namespace {

[[noreturn]] void malformed(const std::string& path, std::int64_t line,
                            const std::string& problem) {
  throw Error(ErrorCode::bad_data, problem, fmt::format("{}: line {}", path, line),
              "docs/formats.md says what Matrix Market files look like");
}

[[noreturn]] void unsupported(const std::string& path, const std::string& what,
                              const std::string& fix) {
  throw Error(ErrorCode::unsupported, what + " matrices are not graphs Tessera can hold",
              path + ": line 1", fix);
}

std::vector<std::string> banner_words(std::string_view line) {
  std::vector<std::string> words;
  LineScanner scanner(line);
  while (!scanner.at_end()) words.push_back(lower_case(scanner.word()));
  return words;
}

MatrixField parse_field(const std::string& word, const std::string& path) {
  if (word == "pattern") return MatrixField::pattern;
  if (word == "real" || word == "double") return MatrixField::real;
  if (word == "integer") return MatrixField::integer;
  if (word == "complex") unsupported(path, "complex", "write the values as real");
  malformed(path, 1, fmt::format("unknown kind of values '{}'", word));
}

MatrixSymmetry parse_symmetry(const std::string& word, const std::string& path) {
  if (word == "general") return MatrixSymmetry::general;
  if (word == "symmetric") return MatrixSymmetry::symmetric;
  if (word == "skew-symmetric") return MatrixSymmetry::skew_symmetric;
  if (word == "hermitian") unsupported(path, "hermitian", "write the matrix as symmetric and real");
  malformed(path, 1, fmt::format("unknown symmetry '{}'", word));
}

void parse_banner(std::string_view line, const std::string& path, MatrixHeader& header) {
  const std::vector<std::string> words = banner_words(line);
  if (words.empty() || words[0] != lower_case(matrix_market_banner)) {
    throw Error(ErrorCode::bad_data, "a Matrix Market file begins with %%MatrixMarket",
                path + ": line 1", "give it this line, or --format edges where it lists edges");
  }
  if (words.size() != 5 || words[1] != "matrix") {
    malformed(path, 1, "the first line must be '%%MatrixMarket matrix coordinate FIELD SYMMETRY'");
  }
  if (words[2] == "array") unsupported(path, "dense ('array')", "write it as 'coordinate'");
  if (words[2] != "coordinate") malformed(path, 1, fmt::format("unknown format '{}'", words[2]));
  header.field = parse_field(words[3], path);
  header.symmetry = parse_symmetry(words[4], path);
  if (header.field == MatrixField::pattern && header.symmetry == MatrixSymmetry::skew_symmetric) {
    malformed(path, 1, "a pattern has no signs and cannot be skew-symmetric");
  }
}

void parse_size_line(std::string_view line, const std::string& path, std::int64_t number,
                     std::int64_t text_bytes, MatrixHeader& header) {
  LineScanner scanner(line);
  const auto rows = scanner.integer();
  const auto cols = rows ? scanner.integer() : rows;
  const auto entries = cols ? scanner.integer() : cols;
  if (!entries || !scanner.at_end()) {
    malformed(path, number, "must hold the numbers of rows, columns and entries");
  }
  const std::string where = fmt::format("{}: line {}", path, number);
  header.rows = checked_vertex_count(*rows, text_bytes, where);
  header.cols = checked_vertex_count(*cols, text_bytes, where);
  header.entries = *entries;
  if (header.symmetry != MatrixSymmetry::general && header.rows != header.cols) {
    malformed(path, number, fmt::format("a symmetric matrix cannot be {} x {}", *rows, *cols));
  }
}

}  // namespace

MatrixHeader parse_matrix_header(std::string_view text, const std::string& path) {
  MatrixHeader header;
  const auto text_bytes = static_cast<std::int64_t>(text.size());
  parse_banner(take_line(text), path, header);
  for (std::int64_t number = 2; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    if (is_comment(line)) continue;
    parse_size_line(line, path, number, text_bytes, header);
    header.body = text;
    return header;
  }
  malformed(path, 1, "the line with the size of the matrix is missing");
}

}  // namespace tessera::io
