// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/train/predict.hpp"

#include "io/array.hpp"

/// Predictions in files of each kind (docs/formats.md).
namespace tessera::train {

void write_prediction_csv(const Prediction& prediction, PredictionForm form,
                          const std::string& path);
void write_prediction_json(const Prediction& prediction, PredictionForm form,
                           const std::string& path);
void write_prediction_npz(const Prediction& prediction, const std::string& path);

/// Of numbers, as a table, as objects or as arrays by the file's ending.
void write_number_predictions(const Prediction& prediction, PredictionForm form,
                              const std::string& path);

/// What an item is called: by its name, or its number where it has none.
std::string item_name(const Prediction& prediction, std::int64_t item);

/// What the columns of the logits are called.
std::vector<std::string> output_names(const Prediction& prediction);

/// A probability as texts have it: six digits.
void append_probability(std::string& text, double probability);

/// The array `id` of the names of items, where they have some.
void add_item_names(const Prediction& prediction, std::vector<io::NamedArray>& arrays);

/// An array over the memory of a matrix, which has to outlive it.
io::NamedArray borrowed(std::string name, const Matrix<float>& matrix);

}  // namespace tessera::train
