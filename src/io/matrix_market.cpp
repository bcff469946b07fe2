// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/matrix_market.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "io/dataset_arrays.hpp"
#include "io/file.hpp"
#include "io/matrix_market_header.hpp"
#include "io/text.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t grain = 1 << 16;

struct Entries {
  Buffer<VertexId> rows;
  Buffer<VertexId> cols;
  Buffer<float> values;  ///< empty for a pattern

  Entries(std::int64_t count, bool with_values)
      : rows(count), cols(count), values(with_values ? count : 0) {}
};

[[noreturn]] void bad_line(const std::string& path, std::int64_t line, const std::string& problem,
                           const char* fix = damaged_file_fix) {
  throw Error(ErrorCode::bad_data, problem, fmt::format("{}: line {}", path, line), fix);
}

/// A number beyond the range of float: rounds to zero if it is too small, is refused if too large.
std::optional<float> parse_extreme(const std::string& word) {
  double value = 0;
  const auto [stop, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem == std::errc::result_out_of_range) {
    const bool tiny = word.find("e-") != std::string::npos || word.find("E-") != std::string::npos;
    return tiny ? std::optional(0.0f) : std::nullopt;
  }
  const auto narrow = static_cast<float>(value);
  return std::isinf(narrow) ? std::nullopt : std::optional(narrow);
}

/// Fortran writes exponents with a D, which nobody else reads.
std::optional<float> parse_real(std::string_view given) {
  if (given.starts_with('+')) given.remove_prefix(1);
  std::string with_e;
  if (given.find_first_of("dD") != std::string_view::npos) {
    with_e = given;
    std::replace_if(
        with_e.begin(), with_e.end(), [](char c) { return c == 'd' || c == 'D'; }, 'e');
    given = with_e;
  }
  float value = 0;
  const auto [stop, problem] = std::from_chars(given.data(), given.data() + given.size(), value);
  if (stop != given.data() + given.size()) return {};
  if (problem == std::errc::result_out_of_range) return parse_extreme(std::string(given));
  return problem == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<float> parse_value(LineScanner& scanner, MatrixField field) {
  if (field == MatrixField::real) return parse_real(scanner.word());
  const auto value = scanner.integer();
  return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
}

VertexId parse_index(LineScanner& scanner, VertexId count, const std::string& path,
                     std::int64_t line) {
  const auto index = scanner.integer();
  if (!index) bad_line(path, line, "must begin with a row and a column");
  if (*index < 1 || *index > count) {
    bad_line(path, line, fmt::format("index {} is not within 1 to {}", *index, count));
  }
  return static_cast<VertexId>(*index - 1);
}

Entries parse_entries(const MatrixHeader& header, const std::string& path, Nonfinite nonfinite) {
  const TextEntries lines(header.body, header.body_line);
  if (lines.count() != header.entries) {
    throw Error(
        ErrorCode::bad_data,
        fmt::format("holds {} entries, but its size line says {}", lines.count(), header.entries),
        path, damaged_file_fix);
  }
  const bool has_values = header.field != MatrixField::pattern;
  Entries entries(header.entries, has_values);
  lines.for_each([&](std::int64_t entry, std::string_view line, std::int64_t number) {
    LineScanner scanner(line);
    entries.rows[entry] = parse_index(scanner, header.rows, path, number);
    entries.cols[entry] = parse_index(scanner, header.cols, path, number);
    if (has_values) {
      const auto value = parse_value(scanner, header.field);
      if (!value) bad_line(path, number, "has no value that fits a 32-bit float");
      if (nonfinite == Nonfinite::reject && !std::isfinite(*value)) {
        bad_line(path, number, "has a value that is not finite",
                 "give finite values, or use --nonfinite allow");
      }
      if (header.symmetry == MatrixSymmetry::skew_symmetric && *value != 0 &&
          entries.rows[entry] == entries.cols[entry]) {
        bad_line(path, number, "the diagonal of a skew-symmetric matrix is zero");
      }
      entries.values[entry] = *value;
    }
    if (!scanner.at_end()) bad_line(path, number, "goes on after the entry");
  });
  return entries;
}

/// Adds (j, i) for every (i, j) off the diagonal; `sign` is that of the mirrored values.
Entries mirrored(const Entries& half, float sign) {
  const std::int64_t count = half.rows.size();
  std::vector<std::int64_t> extra(static_cast<std::size_t>((count + grain - 1) / grain));
  parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t off_diagonal = 0;
    for (std::int64_t k = begin; k < end; ++k) off_diagonal += half.rows[k] != half.cols[k] ? 1 : 0;
    extra[static_cast<std::size_t>(begin / grain)] = off_diagonal;
  });
  const std::int64_t mirrors = exclusive_scan(std::span(extra));
  const bool has_values = !half.values.empty();
  Entries whole(count + mirrors, has_values);
  parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t next = count + extra[static_cast<std::size_t>(begin / grain)];
    for (std::int64_t k = begin; k < end; ++k) {
      whole.rows[k] = half.rows[k];
      whole.cols[k] = half.cols[k];
      if (has_values) whole.values[k] = half.values[k];
      if (half.rows[k] == half.cols[k]) continue;
      whole.rows[next] = half.cols[k];
      whole.cols[next] = half.rows[k];
      if (has_values) whole.values[next] = sign * half.values[k];
      ++next;
    }
  });
  return whole;
}

}  // namespace

Dataset read_matrix_market(const std::string& path, const ReadOptions& options) {
  report(options.progress, "reading text");
  Buffer<std::byte> bytes = load_text(path);
  const MatrixHeader header = parse_matrix_header(text_of(bytes), path);
  report(options.progress, "parsing");
  Entries entries = parse_entries(header, path, options.nonfinite);
  bytes = {};
  if (header.symmetry != MatrixSymmetry::general) {
    entries = mirrored(entries, header.symmetry == MatrixSymmetry::symmetric ? 1.0f : -1.0f);
  }
  BuildOptions build{options.duplicates, false, options.progress};
  build.nonfinite = options.nonfinite;
  Graph graph = naming_file(path, [&] {
    return from_coo(header.rows, header.cols, entries.rows.span(), entries.cols.span(),
                    entries.values.span(), build);
  });
  Dataset dataset;
  dataset.name = stem_of(path);
  dataset.graph = std::move(graph);
  dataset.edges_stored = header.entries;
  return dataset;
}

}  // namespace tessera::io
