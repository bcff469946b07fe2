// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/matrix_market.hpp"

#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/dataset_arrays.hpp"
#include "io/file.hpp"
#include "io/matrix_market_header.hpp"
#include "io/reading_notes.hpp"
#include "io/scan.hpp"
#include "io/text_edges.hpp"

namespace tessera::io {
namespace {

bool ends_word(char c) { return is_blank(c) || c == '\n'; }

const char* scan_index(const char* at, const char* end, VertexId count, VertexId& index) {
  at = skip_blanks(at, end);
  std::int64_t number = 0;
  const char* const stop = scan_integer(at, end, number);
  if (stop == nullptr || (stop != end && !ends_word(*stop))) {
    throw LineProblem{at, "must begin with a row and a column"};
  }
  if (number < 1 || number > count) {
    throw LineProblem{at, fmt::format("index {} is not within 1 to {}", number, count)};
  }
  index = static_cast<VertexId>(number - 1);
  return stop;
}

const char* scan_value(const char* at, const char* end, MatrixField field, float& value) {
  at = skip_blanks(at, end);
  const char* stop = nullptr;
  if (field == MatrixField::real) {
    if (at != end && *at != '\n') stop = scan_real(at, end, ends_word, value);
  } else {
    std::int64_t number = 0;
    stop = scan_integer(at, end, number);
    if (stop != nullptr && stop != end && !ends_word(*stop)) stop = nullptr;
    value = static_cast<float>(number);
  }
  if (stop == nullptr) throw LineProblem{at, "has no value that fits a 32-bit float"};
  return stop;
}

/// What the entries of one file must look like.
struct EntryParser {
  const MatrixHeader& header;
  Nonfinite nonfinite;

  void check(const char* at, const Entry& entry) const {
    require_finite(entry.value, at, "value", nonfinite);
    if (header.symmetry == MatrixSymmetry::skew_symmetric && entry.row == entry.col &&
        entry.value != 0) {
      throw LineProblem{at, "the diagonal of a skew-symmetric matrix is zero"};
    }
  }

  void operator()(const TextChunk& chunk, bool with_values, std::vector<Entry>& out) const {
    const char* at = chunk.text.data();
    const char* const end = at + chunk.text.size();
    const bool has_values = header.field != MatrixField::pattern;
    while (at != end) {
      at = skip_blanks(at, end);
      if (at == end) break;
      if (*at == '\n') {
        ++at;
        continue;
      }
      if (*at == '%') {
        at = line_end(at, end);
        continue;
      }
      Entry entry{0, 0, 1};
      at = scan_index(at, end, header.rows, entry.row);
      at = scan_index(at, end, header.cols, entry.col);
      if (has_values && !with_values) {
        at = line_end(at, end);
      } else {
        if (has_values) {
          at = scan_value(at, end, header.field, entry.value);
          check(at, entry);
        }
        at = skip_blanks(at, end);
        if (at != end && *at != '\n') throw LineProblem{at, "goes on after the entry"};
      }
      out.push_back(entry);
    }
  }
};

int mirror_of(MatrixSymmetry symmetry) {
  switch (symmetry) {
    case MatrixSymmetry::symmetric: return 1;
    case MatrixSymmetry::skew_symmetric: return -1;
    default: return 0;
  }
}

/// The header, which the first block of the text holds, and where the entries begin.
MatrixHeader read_header(TextSource& source, std::int64_t& begin) {
  const auto block = source.next();
  const std::string_view text = block ? block->text : std::string_view();
  const MatrixHeader header = parse_matrix_header(text, source.path());
  begin = (block ? block->offset : 0) + (header.body.data() - text.data());
  return header;
}

}  // namespace

Dataset read_matrix_market(const std::string& path, const ReadOptions& options) {
  TextSource source(path);
  std::int64_t begin = 0;
  const MatrixHeader header = read_header(source, begin);
  const auto check_count = [&](std::int64_t entries) {
    if (entries == header.entries) return;
    damaged(path,
            fmt::format("holds {} entries, but its size line says {}", entries, header.entries));
  };
  const EntryParser parser{header, options.nonfinite};
  const auto from_one = [](VertexId index) { return std::to_string(std::int64_t{index} + 1); };
  Dataset dataset;
  dataset.name = stem_of(path);
  dataset.graph =
      build_from_text(source,
                      {begin, header.rows, header.cols, header.field != MatrixField::pattern,
                       mirror_of(header.symmetry), "row", "column", from_one, parser, check_count},
                      options);
  dataset.edges_stored = header.entries;
  if (header.symmetry == MatrixSymmetry::general) {
    note_merged_edges(header.entries, options.duplicates, dataset);
  }
  return dataset;
}

}  // namespace tessera::io
