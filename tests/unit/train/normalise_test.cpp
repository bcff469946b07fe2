// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/normalisation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/sections.hpp"
#include "support/trained.hpp"
#include "support/training_data.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/train/predictor.hpp"
#include "tessera/train/problem.hpp"

namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_vertices;
using test::short_training;
using test::small_model;
using test::TemporaryFolder;
using test::with_sparse_features;
using testing::expect_error;

const nn::ModelConfig gcn = small_model(nn::ModelKind::gcn);

TrainOptions standard_training() {
  TrainOptions options = short_training(5);
  options.normalise = Normalise::standard;
  return options;
}

const Matrix<float>& dense(const Features& features) { return *std::get<DenseFeatures>(features); }

std::shared_ptr<Matrix<float>> copy_of(const Matrix<float>& matrix) {
  auto copy = std::make_shared<Matrix<float>>(matrix.rows(), matrix.cols());
  std::copy_n(matrix.data(), matrix.size(), copy->data());
  return copy;
}

/// Columns with units of their own: far from 0, huge, tiny, one number only.
Dataset in_units() {
  Dataset dataset = learnable_vertices();
  auto features = copy_of(dense(dataset.features));
  for (std::int64_t v = 0; v < features->rows(); ++v) {
    (*features)(v, 1) = 1e6f + (*features)(v, 1);
    (*features)(v, 2) *= -1e30f;
    (*features)(v, 3) *= 1e-30f;
    (*features)(v, 4) = 0.1f;
  }
  dataset.features = DenseFeatures(std::move(features));
  return dataset;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
};

/// By hand, in the order of the rows that `takes` accepts.
template <class Takes>
Moments moments(const Matrix<float>& matrix, std::int64_t col, Takes&& takes) {
  double sum = 0, squares = 0, count = 0;
  for (std::int64_t row = 0; row < matrix.rows(); ++row) {
    if (!takes(row)) continue;
    sum += static_cast<double>(matrix(row, col));
    ++count;
  }
  const double mean = sum / count;
  for (std::int64_t row = 0; row < matrix.rows(); ++row) {
    if (takes(row)) squares += std::pow(static_cast<double>(matrix(row, col)) - mean, 2);
  }
  return {mean, std::sqrt(squares / count)};
}

Moments moments(const Matrix<float>& matrix, std::int64_t col) {
  return moments(matrix, col, [](std::int64_t) { return true; });
}

TEST(Normalise, names_are_read_back_and_on_means_rows) {
  for (const Normalise choice :
       {Normalise::automatic, Normalise::off, Normalise::rows, Normalise::standard}) {
    EXPECT_EQ(parse_normalise(to_string(choice)), choice);
  }
  EXPECT_EQ(parse_normalise("on"), Normalise::rows);
  expect_error(ErrorCode::invalid_argument, {"normalise 'unit'", "auto, off, rows, standard"},
               [] { parse_normalise("unit"); });
}

TEST(Normalise, standard_columns_have_mean_0_and_deviation_1) {
  const Dataset dataset = in_units();
  const Problem problem = prepare(dataset, gcn, standard_training());
  ASSERT_EQ(problem.normalisation.kind, Normalise::standard);
  const Matrix<float>& from = dense(dataset.features);
  const Matrix<float>& to = dense(problem.features);
  for (std::int64_t col = 0; col < to.cols(); ++col) {
    SCOPED_TRACE(col);
    const auto [mean, deviation] = moments(to, col);
    EXPECT_NEAR(mean, 0, 1e-5);
    EXPECT_NEAR(deviation, col == 4 ? 0 : 1, 1e-5);
    const auto [mean_before, deviation_before] = moments(from, col);
    const auto place = static_cast<std::size_t>(col);
    EXPECT_NEAR(problem.normalisation.means[place], mean_before, 1e-9 * std::abs(mean_before));
    if (col == 4) {
      EXPECT_EQ(problem.normalisation.factors[place], 1) << "a column of one number";
    } else {
      EXPECT_NEAR(problem.normalisation.factors[place] * deviation_before, 1, 1e-9);
    }
  }
}

TEST(Normalise, automatic_asks_what_the_features_are) {
  const auto kind_of = [](const Dataset& dataset) {
    return prepare(dataset, gcn, short_training(1)).normalisation.kind;
  };
  Dataset dataset = in_units();
  EXPECT_EQ(kind_of(dataset), Normalise::off) << "some are negative";
  const std::vector<std::string> names(static_cast<std::size_t>(dataset.num_features()), "unit");
  dataset.feature_names = Names(names);
  EXPECT_EQ(kind_of(dataset), Normalise::standard) << "columns of a table";
  Dataset counts = learnable_vertices();
  auto features = copy_of(dense(counts.features));
  for (std::int64_t i = 0; i < features->size(); ++i) {
    features->data()[i] = std::abs(features->data()[i]);
  }
  counts.features = DenseFeatures(std::move(features));
  EXPECT_EQ(kind_of(counts), Normalise::rows) << "none is negative";
}

TEST(Normalise, standard_has_the_same_bits_on_any_number_of_threads) {
  const Dataset dataset = learnable_vertices(5000);
  set_num_threads(1);
  const Normalisation one = prepare(dataset, gcn, standard_training()).normalisation;
  set_num_threads(3);
  EXPECT_EQ(prepare(dataset, gcn, standard_training()).normalisation, one);
  set_num_threads(0);
}

TEST(Normalise, standard_leaves_zeros_of_sparse_features) {
  const Dataset dataset = with_sparse_features(learnable_vertices());
  const Problem problem = prepare(dataset, gcn, standard_training());
  const Graph& from = std::get<SparseFeatures>(dataset.features);
  const Graph& to = std::get<SparseFeatures>(problem.features);
  Matrix<float> whole(from.num_rows(), from.num_cols(), 0.0f);
  for (VertexId v = 0; v < from.num_rows(); ++v) {
    for (EdgeOffset k = from.row_offsets()[v]; k < from.row_offsets()[v + 1]; ++k) {
      whole(v, from.col_indices()[k]) = from.values()[k];
    }
  }
  ASSERT_EQ(to.num_edges(), from.num_edges());
  for (EdgeOffset k = 0; k < to.num_edges(); ++k) {
    const double deviation = moments(whole, from.col_indices()[k]).deviation;
    EXPECT_NEAR(static_cast<double>(to.values()[k]),
                static_cast<double>(from.values()[k]) / deviation, 1e-5);
  }
  ASSERT_EQ(problem.notes.size(), 1u);
  EXPECT_NE(problem.notes[0].find("features are sparse"), std::string::npos);
}

TEST(Normalise, standard_of_graphs_looks_at_those_trained_on) {
  Dataset dataset = learnable_graphs();
  const VertexId vertices = dataset.graph.num_rows();
  auto features = std::make_shared<Matrix<float>>(vertices, 2);
  for (VertexId v = 0; v < vertices; ++v) {
    (*features)(v, 0) = static_cast<float>(v * v % 97);
    (*features)(v, 1) = static_cast<float>(v % 5) - 3;
  }
  dataset.features = DenseFeatures(features);
  const nn::ModelConfig config = small_model(nn::ModelKind::gin, true);
  const Problem problem = prepare(dataset, config, standard_training());
  const auto& train = problem.split.train;
  const auto is_trained = [&](std::int64_t v) {
    return std::find(train.begin(), train.end(), dataset.graph_ids[v]) != train.end();
  };
  for (std::int64_t col = 0; col < 2; ++col) {
    const auto [mean, deviation] = moments(dense(problem.features), col, is_trained);
    EXPECT_NEAR(mean, 0, 1e-5);
    EXPECT_NEAR(deviation, 1, 1e-5);
    EXPECT_GT(std::abs(moments(dense(problem.features), col).mean), 1e-4) << "others differ";
  }
  TrainOptions folds = standard_training();
  folds.folds = 3;
  expect_error(ErrorCode::invalid_argument, {"every fold", "--normalise rows or off"},
               [&] { prepare(dataset, config, folds); });
}

TEST(Normalise, standard_needs_features_in_the_data) {
  Dataset dataset = learnable_vertices();
  dataset.features = std::monostate();
  expect_error(ErrorCode::invalid_argument, {"no features", "--normalise off"},
               [&] { prepare(dataset, gcn, standard_training()); });
}

/// A training with a checkpoint, and the checkpoint.
class StandardCheckpoint : public ::testing::Test {
 protected:
  void train(const Dataset& dataset, const nn::ModelConfig& config = gcn) {
    TrainOptions options = standard_training();
    options.checkpoint.path = path_;
    fit(dataset, config, options);
  }

  void expect_same_bits(const Matrix<float>& got, const Matrix<float>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::int64_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got.data()[i], expected.data()[i]) << "element " << i;
    }
  }

  /// The logits of features that were scaled by hand, of a model that scales nothing.
  Matrix<float> by_hand(Checkpoint checkpoint, Dataset dataset) {
    auto features = copy_of(dense(dataset.features));
    for (std::int64_t v = 0; v < features->rows(); ++v) {
      for (std::int64_t f = 0; f < features->cols(); ++f) {
        const auto place = static_cast<std::size_t>(f);
        (*features)(v, f) = static_cast<float>(
            (static_cast<double>((*features)(v, f)) - checkpoint.normalisation.means[place]) *
            checkpoint.normalisation.factors[place]);
      }
    }
    dataset.features = DenseFeatures(std::move(features));
    checkpoint.normalisation = {};
    return predict(checkpoint, dataset).logits;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "model.tsr";
};

TEST_F(StandardCheckpoint, predictions_scale_with_the_numbers_of_training) {
  const Dataset dataset = in_units();
  train(dataset);
  const Checkpoint checkpoint = load_checkpoint(path_);
  EXPECT_EQ(checkpoint.normalisation, prepare(dataset, gcn, standard_training()).normalisation);
  expect_same_bits(predict(checkpoint, dataset).logits, by_hand(checkpoint, dataset));
  // Others have means and deviations of their own, which do not count.
  Dataset other = dataset;
  auto features = copy_of(dense(dataset.features));
  for (std::int64_t v = 0; v < features->rows(); ++v) (*features)(v, 0) = 5;
  other.features = DenseFeatures(features);
  const Matrix<float> expected = by_hand(checkpoint, other);
  expect_same_bits(predict(checkpoint, other).logits, expected);
  Predictor predictor(checkpoint, other.graph);
  Matrix<float> logits(120, 3);
  predictor.run(*features, logits);
  expect_same_bits(logits, expected);
}

TEST_F(StandardCheckpoint, of_few_bits_rounds_what_was_scaled) {
  nn::ModelConfig config = gcn;
  config.bits = {4, 4};
  train(in_units(), config);
  const Checkpoint checkpoint = load_checkpoint(path_);
  expect_same_bits(predict(checkpoint, in_units()).logits, by_hand(checkpoint, in_units()));
}

TEST_F(StandardCheckpoint, sparse_and_dense_features_give_the_same) {
  const Dataset sparse = with_sparse_features(learnable_vertices());
  Dataset whole = sparse;
  const Graph& from = std::get<SparseFeatures>(sparse.features);
  auto features = std::make_shared<Matrix<float>>(from.num_rows(), from.num_cols(), 0.0f);
  for (VertexId v = 0; v < from.num_rows(); ++v) {
    for (EdgeOffset k = from.row_offsets()[v]; k < from.row_offsets()[v + 1]; ++k) {
      (*features)(v, from.col_indices()[k]) = from.values()[k];
    }
  }
  whole.features = DenseFeatures(std::move(features));
  for (const Dataset& trained : {sparse, whole}) {
    train(trained);
    const Checkpoint checkpoint = load_checkpoint(path_);
    const Matrix<float> one = predict(checkpoint, sparse).logits;
    const Matrix<float> other = predict(checkpoint, whole).logits;
    for (std::int64_t i = 0; i < one.size(); ++i) {
      ASSERT_NEAR(one.data()[i], other.data()[i], 1e-4) << "element " << i;
    }
  }
}

TEST_F(StandardCheckpoint, resumes_to_the_same_bits) {
  const Dataset dataset = in_units();
  TrainOptions options = standard_training();
  options.checkpoint.path = path_;
  fit(dataset, gcn, options);
  options.epochs = 8;
  options.checkpoint.resume = true;
  fit(dataset, gcn, options);
  const Checkpoint resumed = load_checkpoint(path_);
  std::filesystem::remove(path_);
  fit(dataset, gcn, options);
  expect_same_bits(predict(resumed, dataset).logits,
                   predict(load_checkpoint(path_), dataset).logits);
  options.normalise = Normalise::rows;
  expect_error(ErrorCode::invalid_argument, {"training.normalise = standard, not rows"},
               [&] { fit(dataset, gcn, options); });
}

TEST_F(StandardCheckpoint, a_feature_that_cannot_be_scaled_is_named) {
  const Dataset dataset = in_units();
  train(dataset);
  Predictor predictor(load_checkpoint(path_), dataset.graph);
  Matrix<float> features = std::move(*copy_of(dense(dataset.features)));
  Matrix<float> logits(120, 3);
  predictor.run(features, logits);
  features(7, 3) = 1e30f;  // the deviation of this column is about 1e-31
  expect_error(ErrorCode::bad_data, {"vertex 7: feature 3", "too far from the mean"},
               [&] { predictor.run(features, logits); });
  Dataset narrow = dataset;
  narrow.features = DenseFeatures(std::make_shared<Matrix<float>>(120, 2, 1.0f));
  expect_error(ErrorCode::invalid_argument, {"2 features", "9"},
               [&] { predict(load_checkpoint(path_), narrow); });
  narrow.features = with_sparse_features(narrow).features;
  expect_error(ErrorCode::invalid_argument, {"2 features", "9"},
               [&] { predict(load_checkpoint(path_), narrow); });
}

TEST_F(StandardCheckpoint, numbers_that_make_no_sense_are_refused) {
  train(in_units());
  const std::vector<io::NamedArray> whole = test::read_sections(path_);
  const auto expect_bad = [&](const char* section, std::vector<double> values) {
    std::vector<io::NamedArray> arrays = whole;
    test::find_section(arrays, section) = io::stored(SharedArray<double>(std::move(values)));
    io::write_sections(path_, arrays);
    expect_error(ErrorCode::bad_data, {}, [&] { load_checkpoint(path_); });
  };
  const std::vector<double> good(9, 0.5);
  const auto with = [&](double value) {
    std::vector<double> values = good;
    values[8] = value;
    return values;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const char* section : {"feature_means", "feature_factors"}) {
    SCOPED_TRACE(section);
    expect_bad(section, {});
    expect_bad(section, std::vector<double>(8, 0.5));
    expect_bad(section, std::vector<double>(10, 0.5));
    expect_bad(section, with(std::nan("")));
    expect_bad(section, with(infinity));
    expect_bad(section, with(-infinity));
    std::vector<io::NamedArray> arrays = whole;
    test::find_section(arrays, section) = io::stored(SharedArray<float>(std::vector<float>(9, 1)));
    io::write_sections(path_, arrays);
    expect_error(ErrorCode::bad_data, {"double precision"}, [&] { load_checkpoint(path_); });
    arrays = whole;
    std::erase_if(arrays, [&](const io::NamedArray& entry) { return entry.first == section; });
    io::write_sections(path_, arrays);
    expect_error(ErrorCode::bad_data, {"9 features"}, [&] { load_checkpoint(path_); });
  }
  expect_bad("feature_factors", with(0));
  expect_bad("feature_factors", with(-1));
  std::vector<io::NamedArray> arrays = whole;
  test::set_line(arrays, "checkpoint", "row_normalised", "1");
  io::write_sections(path_, arrays);
  expect_error(ErrorCode::bad_data, {"row_normalised"}, [&] { load_checkpoint(path_); });
}

/// Files written when rows were all that could be normalised.
TEST_F(StandardCheckpoint, earlier_names_of_the_setting_are_understood) {
  const Dataset dataset = learnable_vertices();
  for (const auto& [now, then] :
       {std::pair{Normalise::rows, "on"}, std::pair{Normalise::automatic, "auto"},
        std::pair{Normalise::off, "off"}}) {
    TrainOptions options = standard_training();
    options.normalise = now;
    options.checkpoint.path = path_;
    fit(dataset, gcn, options);
    std::vector<io::NamedArray> arrays = test::read_sections(path_);
    ExtraArray& array = test::find_section(arrays, "settings");
    std::string text = test::text_of(array);
    const std::string line = std::string("training.normalise = ") + to_string(now) + "\n";
    const std::size_t place = text.find(line);
    ASSERT_NE(place, std::string::npos);
    text.replace(place, line.size(), std::string("training.row_normalise = ") + then + "\n");
    array = io::stored_text(text);
    io::write_sections(path_, arrays);
    options.epochs = 6;
    options.checkpoint.resume = true;
    EXPECT_EQ(fit(dataset, gcn, options).epochs, 1);
  }
}

}  // namespace
}  // namespace tessera::train
