// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/predict.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/fingerprint.hpp"
#include "tessera/io/index_file.hpp"
#include "tessera/io/writing.hpp"
#include "tessera/train/metrics.hpp"
#include "tessera/train/predictor.hpp"

#include "io/file.hpp"
#include "io/npz_arrays.hpp"
#include "train/data_fingerprint.hpp"
#include "train/host.hpp"
#include "train/predict_batches.hpp"
#include "train/prediction_csv.hpp"

namespace tessera::train {
namespace {

/// 1 where the logit says yes.
io::NamedArray yes_or_no(const Matrix<float>& logits) {
  auto answers = std::make_shared<Matrix<float>>(logits.rows(), logits.cols());
  for (std::int64_t i = 0; i < logits.size(); ++i) {
    answers->data()[i] = logits.data()[i] > 0 ? 1.0f : 0.0f;
  }
  return {"prediction", io::stored(std::shared_ptr<const Matrix<float>>(std::move(answers)))};
}

io::NamedArray borrowed(std::string name, const Matrix<float>& matrix) {
  return {std::move(name),
          io::stored(std::shared_ptr<const Matrix<float>>(&matrix, [](const auto*) {}))};
}

bool is_csv(const std::string& path) { return path.ends_with(".csv"); }

bool is_text(const std::string& path) { return path.ends_with(".txt") || is_csv(path); }

/// The bits of the layer that a tensor belongs to: "convs.1.lin.weight" to layer 1.
int convolution_bits(const nn::ModelConfig& config, const std::string& path) {
  constexpr std::string_view prefix = "convs.";
  if (!path.starts_with(prefix)) return 0;
  std::int64_t layer = 0;
  const char* const end = path.data() + path.size();
  if (std::from_chars(path.data() + prefix.size(), end, layer).ec != std::errc{}) return 0;
  return layer >= 0 && layer < config.layers ? nn::layer_bits(config, layer) : 0;
}

const Setting bits_after_training{"model.bits_from", "after training"};

}  // namespace

bool quantised_after_training(const Checkpoint& checkpoint) {
  return std::find(checkpoint.settings.begin(), checkpoint.settings.end(), bits_after_training) !=
         checkpoint.settings.end();
}

std::int64_t weight_bytes(const Checkpoint& checkpoint, const std::vector<std::int64_t>& bits) {
  nn::ModelConfig config = checkpoint.model;
  config.bits = bits;
  nn::validate(config);
  constexpr std::int64_t range_bytes = 2 * sizeof(float);
  std::int64_t bytes = 0;
  for (const StoredTensor& tensor : checkpoint.weights) {
    const auto& shape = tensor.array.shape;
    std::int64_t numbers = 1;
    for (const std::int64_t extent : shape) numbers *= extent;
    const int of_layer = convolution_bits(config, tensor.path);
    const bool is_product = shape.size() == 2 && shape[0] > 1 && shape[1] > 1;
    bytes += of_layer > 0 && is_product ? (numbers * of_layer + 7) / 8 + shape[0] * range_bytes
                                        : numbers * static_cast<std::int64_t>(sizeof(float));
  }
  return bytes;
}

Checkpoint quantised(Checkpoint checkpoint, const std::vector<std::int64_t>& bits,
                     std::vector<StoredTensor> ranges, std::optional<double> lost) {
  if (checkpoint.model.bits.empty()) checkpoint.settings.push_back(bits_after_training);
  checkpoint.model.bits = bits;
  for (Setting& setting : checkpoint.settings) {
    if (setting.name == "model.bits") setting.value = nn::bits_text(bits);
  }
  checkpoint.ranges = std::move(ranges);
  checkpoint.lost = lost;
  validate(checkpoint, "quantised model");
  return checkpoint;
}

Prediction predict(const Checkpoint& checkpoint, const Dataset& dataset,
                   const PredictOptions& options) {
  if (options.partition != nullptr) return predict_in_batches(checkpoint, dataset, options);
  Predictor predictor(checkpoint, dataset, options);
  Prediction prediction;
  prediction.logits = Matrix<float>(predictor.num_items(), predictor.num_outputs());
  predictor.run(prediction.logits);
  name_classes(checkpoint, dataset, prediction);
  prediction.computed = predictor.explain();
  prediction.notes = predictor.notes();
  prediction.ranges = predictor.ranges();
  prediction.memory = predictor.code_memory();
  if (options.embeddings) {
    prediction.embeddings = to_host(predictor.embeddings(), options.placement.stream);
  }
  return prediction;
}

std::vector<std::int64_t> test_items(const Checkpoint& checkpoint, const Dataset& dataset) {
  const Setting edges{std::string(fingerprint_prefix) + "edges",
                      fmt::format("{:016x}", fingerprint(dataset.graph))};
  const auto& settings = checkpoint.settings;
  if (std::find(settings.begin(), settings.end(), edges) == settings.end()) return {};
  const std::int64_t items =
      checkpoint.graph_task ? dataset.num_graphs() : dataset.graph.num_rows();
  for (const std::int64_t item : checkpoint.split.test) {
    if (item < items) continue;
    io::damaged("checkpoint", fmt::format("the split has item {} of {}", item, items));
  }
  return checkpoint.split.test;
}

void require_prediction_ending(const std::string& path, bool multi_label) {
  if (path.ends_with(".npz") || (is_text(path) && !multi_label)) return;
  throw Error(ErrorCode::invalid_argument,
              is_text(path) ? "several labels per item do not fit into a text of one class a line"
                            : "unknown ending of the file for predictions",
              path, multi_label ? "use .npz" : "use .csv, .npz or .txt");
}

void save(const Prediction& prediction, const std::string& path) {
  require_prediction_ending(path, prediction.multi_label);
  if (is_csv(path)) return io::write_text_file(path, prediction_csv(prediction));
  if (is_text(path)) return io::write_index_file(path, prediction.classes);
  std::vector<io::NamedArray> arrays;
  if (prediction.multi_label) {
    arrays.push_back(yes_or_no(prediction.logits));
  } else {
    arrays.emplace_back("prediction", io::stored(SharedArray<std::int64_t>(prediction.classes)));
  }
  arrays.push_back(borrowed("logits", prediction.logits));
  if (prediction.embeddings.size() > 0) {
    arrays.push_back(borrowed("embeddings", prediction.embeddings));
  }
  io::write_npz_arrays(path, arrays);
}

}  // namespace tessera::train
