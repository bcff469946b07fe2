// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/csv_field.hpp"
#include "io/npz_arrays.hpp"
#include "train/prediction_files.hpp"
#include "train/write_rows.hpp"

namespace tessera::train {
namespace {

bool is_csv(const std::string& path) { return path.ends_with(".csv"); }

}  // namespace

void require_embeddings_ending(const std::string& path) {
  if (is_csv(path) || path.ends_with(".npz")) return;
  throw Error(ErrorCode::invalid_argument, "unknown ending of the file for embeddings", path,
              "use .csv or .npz");
}

void save_embeddings(const Prediction& prediction, const std::string& path) {
  require_embeddings_ending(path);
  const Matrix<float>& embeddings = prediction.embeddings;
  if (!is_csv(path)) {
    std::vector<io::NamedArray> arrays{borrowed("embeddings", embeddings)};
    add_item_names(prediction, arrays);
    return io::write_npz_arrays(path, arrays);
  }
  std::string head = "id";
  for (std::int64_t k = 0; k < embeddings.cols(); ++k) head += ",e" + std::to_string(k);
  write_rows(path, head + '\n', embeddings.rows(), [&](std::string& text, std::int64_t item) {
    io::append_csv_field(text, item_name(prediction, item));
    for (std::int64_t k = 0; k < embeddings.cols(); ++k) {
      fmt::format_to(std::back_inserter(text), ",{}", embeddings(item, k));
    }
    text.push_back('\n');
  });
}

}  // namespace tessera::train
