// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "tessera/core/parallel.hpp"
#include "tessera/train/metrics.hpp"

#include "io/npz_arrays.hpp"
#include "io/text_array.hpp"
#include "train/prediction_files.hpp"
#include "train/softmax_row.hpp"

namespace tessera::train {
namespace {

constexpr std::int64_t grain = 1024;

io::NamedArray owned(std::string name, Matrix<float> matrix) {
  return {std::move(name), io::stored(std::make_shared<const Matrix<float>>(std::move(matrix)))};
}

/// 1 where the logit says yes.
Matrix<float> yes_or_no(const Matrix<float>& logits) {
  Matrix<float> answers(logits.rows(), logits.cols());
  for (std::int64_t i = 0; i < logits.size(); ++i) {
    answers.data()[i] = logits.data()[i] > 0 ? 1.0f : 0.0f;
  }
  return answers;
}

Matrix<float> probabilities(const Prediction& prediction) {
  const Matrix<float>& logits = prediction.logits;
  Matrix<float> result(logits.rows(), logits.cols());
  parallel_for(logits.rows(), grain, [&](std::int64_t i) {
    const SoftmaxRow row(logits.row(i), logits.cols());
    for (std::int64_t k = 0; k < logits.cols(); ++k) {
      const float logit = logits(i, k);
      result(i, k) = static_cast<float>(prediction.multi_label ? sigmoid(logit) : row.share(logit));
    }
  });
  return result;
}

/// A text for each item, made by `text_of`.
template <class TextOf>
io::NamedArray texts_of_items(const Prediction& prediction, const char* name, TextOf&& text_of) {
  std::vector<std::string> texts;
  for (std::int64_t item = 0; item < prediction.logits.rows(); ++item) {
    texts.push_back(text_of(item));
  }
  return io::text_array(name, {texts.begin(), texts.end()});
}

void add_classes(const Prediction& prediction, std::vector<io::NamedArray>& arrays) {
  arrays.emplace_back("prediction", io::stored(SharedArray<std::int64_t>(prediction.classes)));
  arrays.push_back(texts_of_items(prediction, "label", [&](std::int64_t item) {
    const bool is_decided = predicted_class(prediction.logits, item) >= 0;
    const std::int64_t number = prediction.classes[static_cast<std::size_t>(item)];
    return is_decided ? class_name(prediction, number) : std::string();
  }));
  if (prediction.true_classes.empty()) return;
  arrays.push_back(texts_of_items(prediction, "true_label", [&](std::int64_t item) {
    const auto& truth = prediction.true_classes[static_cast<std::size_t>(item)];
    return truth ? class_name(prediction, *truth) : std::string();
  }));
}

}  // namespace

void write_prediction_npz(const Prediction& prediction, const std::string& path) {
  std::vector<io::NamedArray> arrays;
  if (prediction.multi_label) {
    arrays.push_back(owned("prediction", yes_or_no(prediction.logits)));
    const MultiLabels& truth = prediction.true_labels;
    if (truth != nullptr) arrays.emplace_back("true_label", io::stored(truth));
  } else {
    add_classes(prediction, arrays);
  }
  arrays.push_back(borrowed("logits", prediction.logits));
  arrays.push_back(owned("probabilities", probabilities(prediction)));
  const std::vector<std::string> names = output_names(prediction);
  arrays.push_back(io::text_array("class_names", {names.begin(), names.end()}));
  add_item_names(prediction, arrays);
  if (!prediction.parts.empty()) {
    arrays.push_back(texts_of_items(prediction, "split", [&](std::int64_t item) {
      return std::string(to_string(prediction.parts[static_cast<std::size_t>(item)]));
    }));
  }
  io::write_npz_arrays(path, arrays);
}

}  // namespace tessera::train
