// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/predict.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/io/index_file.hpp"
#include "tessera/train/predictor.hpp"

#include "train/host.hpp"
#include "train/name_items.hpp"
#include "train/predict_batches.hpp"
#include "train/prediction_files.hpp"

namespace tessera::train {
namespace {

bool is_csv(const std::string& path) { return path.ends_with(".csv"); }
bool is_json(const std::string& path) { return path.ends_with(".json"); }
bool is_npz(const std::string& path) { return path.ends_with(".npz"); }

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
  prediction.notes = predictor.notes();
  name_items(checkpoint, dataset, prediction);
  prediction.computed = predictor.explain();
  prediction.ranges = predictor.ranges();
  prediction.memory = predictor.code_memory();
  if (options.embeddings) {
    prediction.embeddings = to_host(predictor.embeddings(), options.placement.stream);
  }
  return prediction;
}

void require_prediction_ending(const std::string& path, bool more_than_one_class) {
  const bool is_text = path.ends_with(".txt");
  if (is_csv(path) || is_json(path) || is_npz(path) || (is_text && !more_than_one_class)) return;
  throw Error(ErrorCode::invalid_argument,
              is_text ? "several labels per item, and numbers, do not fit into a text of one class "
                        "a line"
                      : "unknown ending of the file for predictions",
              path,
              more_than_one_class ? "use .csv, .json or .npz" : "use .csv, .json, .npz or .txt");
}

void save(const Prediction& prediction, const std::string& path, PredictionForm form) {
  require_prediction_ending(path, prediction.multi_label || prediction.numbers);
  if (prediction.numbers) return write_number_predictions(prediction, form, path);
  if (is_csv(path)) return write_prediction_csv(prediction, form, path);
  if (is_json(path)) return write_prediction_json(prediction, form, path);
  if (is_npz(path)) return write_prediction_npz(prediction, path);
  io::write_index_file(path, prediction.classes);
}

}  // namespace tessera::train
