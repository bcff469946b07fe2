// SPDX-License-Identifier: Apache-2.0
#include "train/write_rows.hpp"

#include <algorithm>
#include <vector>

#include "io/file.hpp"

namespace tessera::train {
namespace {

constexpr std::int64_t rows_per_piece = 256;
constexpr std::int64_t pieces_at_once = 256;

}  // namespace

void write_rows(const std::string& path, const std::string& head, std::int64_t rows,
                FunctionRef<void(std::string& text, std::int64_t row)> append,
                const std::string& tail) {
  io::AtomicFile file(path);
  file.write(io::bytes_of(head));
  std::vector<std::string> pieces(static_cast<std::size_t>(pieces_at_once));
  constexpr std::int64_t rows_at_once = rows_per_piece * pieces_at_once;
  for (std::int64_t first = 0; first < rows; first += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, rows - first);
    parallel_ranges(count, rows_per_piece, [&](std::int64_t begin, std::int64_t end) {
      std::string& piece = pieces[static_cast<std::size_t>(begin / rows_per_piece)];
      piece.clear();
      for (std::int64_t row = begin; row < end; ++row) append(piece, first + row);
    });
    const std::int64_t used = (count + rows_per_piece - 1) / rows_per_piece;
    for (std::int64_t i = 0; i < used; ++i) {
      file.write(io::bytes_of(pieces[static_cast<std::size_t>(i)]));
    }
  }
  file.write(io::bytes_of(tail));
  file.commit();
}

}  // namespace tessera::train
