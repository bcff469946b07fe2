// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/model_input.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/training_data.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/predict.hpp"
#include "tessera/train/true_classes.hpp"

namespace tessera::train {
namespace {

using test::learnable_vertices;
using test::short_training;
using test::small_model;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using testing::expect_error;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

DenseFeatures dense(std::int64_t rows, const std::vector<float>& values) {
  auto matrix =
      std::make_shared<Matrix<float>>(rows, static_cast<std::int64_t>(values.size()) / rows);
  std::copy(values.begin(), values.end(), matrix->data());
  return matrix;
}

/// Three vertices: age (missing for the second, filled with 4) and colour.
Dataset table() {
  Dataset data;
  data.graph = from_edges(3, std::vector<VertexId>{0, 1}, std::vector<VertexId>{1, 0}, {});
  data.features = dense(3, {2, 1, 0, 4, 0, 1, 6, 1, 0});
  data.feature_names = Names({"age", "colour=blue", "colour=red"});
  data.category_prefixes = std::vector<std::int32_t>{-1, 6, 6};
  data.filled_cells = std::vector<std::int64_t>{3};
  data.validate();
  return data;
}

Dataset with(const std::vector<float>& values, const std::vector<std::string>& names,
             const std::vector<std::int32_t>& prefixes = {}) {
  Dataset data = table();
  data.features = dense(3, values);
  data.feature_names = Names(names);
  data.category_prefixes = prefixes;
  data.filled_cells = {};
  data.validate();
  return data;
}

std::vector<float> numbers(const AlignedData& data) {
  const auto& matrix = *std::get<DenseFeatures>(data.dataset.features);
  return {matrix.data(), matrix.data() + matrix.size()};
}

TEST(ModelInput, KnowsTheMeansOfWhatWasThere) {
  const ModelInput input = input_of(table());
  EXPECT_THAT(input.means, ElementsAre(4, 2.0f / 3, 1.0f / 3));
  EXPECT_EQ(input.feature_names, table().feature_names);
  Dataset nameless = table();
  nameless.feature_names = {};
  nameless.category_prefixes = {};
  EXPECT_THAT(input_of(nameless).means, IsEmpty());
}

TEST(ModelInput, ColumnsAreFoundByTheirNames) {
  const ModelInput input = input_of(table());
  const Dataset other = with({1, 9, 0, 2, 0, 8, 1, 4, 0, 7, 0, 6},
                             {"colour=red", "size", "colour=blue", "age"}, {6, -1, 6, -1});
  // Features of one column stand together; those that do not are two columns of one name.
  expect_error(ErrorCode::invalid_argument, {"'colour'"}, [&] { aligned(input, other); });
  const Dataset moved = with({1, 0, 9, 2, 0, 1, 8, 4, 0, 0, 7, 6},
                             {"colour=red", "colour=blue", "size", "age"}, {6, 6, -1, -1});
  const AlignedData data = aligned(input, moved);
  EXPECT_THAT(numbers(data), ElementsAre(2, 0, 1, 4, 1, 0, 6, 0, 0));
  ASSERT_EQ(data.notes.size(), 1u);
  EXPECT_THAT(data.notes[0], HasSubstr("'size'"));
  EXPECT_EQ(data.dataset.feature_names, input.feature_names);
}

TEST(ModelInput, MissingNumbersGetTheMeansOfTraining) {
  ModelInput input = input_of(table());
  input.means[0] = 40;
  const AlignedData data = aligned(input, table());
  EXPECT_THAT(numbers(data), ElementsAre(2, 1, 0, 40, 0, 1, 6, 1, 0));
  ASSERT_EQ(data.notes.size(), 1u);
  EXPECT_THAT(data.notes[0], HasSubstr("'age' (1 with 40)"));
}

TEST(ModelInput, ACategoryThatNoVertexHasIsZero) {
  const ModelInput input = input_of(table());
  const Dataset only_red = with({1, 1, 1, 2, 0, 3}, {"colour=red", "age"}, {6, -1});
  EXPECT_THAT(numbers(aligned(input, only_red)), ElementsAre(1, 0, 1, 2, 0, 1, 3, 0, 0));
  const Dataset unused =
      with({1, 0, 1, 1, 0, 2, 0, 0, 3}, {"colour=red", "colour=pink", "age"}, {6, 6, -1});
  EXPECT_THAT(numbers(aligned(input, unused)), ElementsAre(1, 0, 1, 2, 0, 1, 3, 0, 0));
}

TEST(ModelInput, EverythingThatDoesNotFitIsNamed) {
  const ModelInput input = input_of(table());
  expect_error(ErrorCode::invalid_argument,
               {"trained with: 'age'", "not seen: 'green' and 'pink' of 'colour'",
                "does not know: 'Age'", "tessera info"},
               [&] {
                 aligned(input,
                         with({1, 0, 0, 9, 0, 1, 0, 9, 0, 0, 1, 9},
                              {"colour=green", "colour=pink", "colour=red", "Age"}, {6, 6, 6, -1}));
               });
  expect_error(ErrorCode::invalid_argument, {"hold texts: 'age' ('old' and 'young')"}, [&] {
    aligned(input, with({1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1},
                        {"age=3", "age=old", "age=young", "colour=red"}, {3, 3, 3, 6}));
  });
  expect_error(ErrorCode::invalid_argument, {"more than once: 'age'"}, [&] {
    aligned(input, with({1, 2, 1, 2, 3, 0, 4, 5, 1}, {"age", "age", "colour=red"}, {-1, -1, 6}));
  });
  Dataset bare = table();
  bare.features = std::monostate();
  bare.feature_names = {};
  bare.category_prefixes = {};
  bare.filled_cells = {};
  expect_error(ErrorCode::invalid_argument, {"'age' and 'colour'"}, [&] { aligned(input, bare); });
}

TEST(ModelInput, LongListsAreCutShort) {
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) names.push_back("column " + std::to_string(i));
  const ModelInput input = input_of(with(std::vector<float>(90, 1), names));
  expect_error(ErrorCode::invalid_argument, {"'column 7' and 22 more"},
               [&] { aligned(input, table()); });
}

TEST(ModelInput, CategoriesThatAreNumbersAreFoundByTheirValue) {
  const ModelInput input =
      input_of(with({1, 0, 0, 0, 1, 0, 0, 0, 1}, {"k=1", "k=2.5", "k=x"}, {1, 1, 1}));
  const AlignedData data = aligned(input, with({2.5f, 1, 1}, {"k"}));
  EXPECT_THAT(numbers(data), ElementsAre(0, 1, 0, 1, 0, 0, 1, 0, 0));
  expect_error(ErrorCode::invalid_argument, {"'7' of 'k'"}, [&] {
    aligned(input, with({2.5f, 1, 7}, {"k"}));
  });
  Dataset missing = with({2.5f, 2, 1}, {"k"});
  missing.filled_cells = std::vector<std::int64_t>{1};
  EXPECT_THAT(numbers(aligned(input, missing)), ElementsAre(0, 1, 0, 0, 0, 0, 1, 0, 0));
  const ModelInput twice =
      input_of(with({1, 0, 0, 0, 1, 0, 0, 0, 1}, {"k=1", "k=1.0", "k=x"}, {1, 1, 1}));
  expect_error(ErrorCode::invalid_argument, {"'k'", "several categories"}, [&] {
    aligned(twice, with({1, 1, 1}, {"k"}));
  });
}

TEST(ModelInput, FeaturesThatSayNothingOfColumnsAreFoundByTheirWholeName) {
  const ModelInput input = input_of(table());
  const Dataset plain = with({1, 2, 0, 0, 3, 1, 1, 4, 0}, {"colour=red", "age", "colour=blue"});
  EXPECT_THAT(numbers(aligned(input, plain)), ElementsAre(2, 0, 1, 3, 1, 0, 4, 0, 1));
  const ModelInput of_plain = input_of(plain);
  EXPECT_THAT(numbers(aligned(of_plain, with({2, 1, 0, 4, 0, 1, 6, 1, 0},
                                             {"age", "colour=blue", "colour=red"}, {-1, 6, 6}))),
              ElementsAre(0, 2, 1, 1, 4, 0, 0, 6, 1));
}

TEST(ModelInput, SparseFeaturesStaySparse) {
  const ModelInput input = input_of(table());
  Dataset sparse = with(std::vector<float>(12, 0), {"size", "colour=red", "age", "colour=blue"});
  sparse.features = from_coo(3, 4, std::vector<VertexId>{0, 0, 1, 2},
                             std::vector<VertexId>{1, 2, 3, 0}, std::vector<float>{1, 5, 1, 9});
  const AlignedData data = aligned(input, sparse);
  const auto& moved = std::get<SparseFeatures>(data.dataset.features);
  EXPECT_EQ(moved.num_cols(), 3);
  EXPECT_THAT(moved.neighbours(0), ElementsAre(0, 2));
  EXPECT_THAT(moved.neighbours(1), ElementsAre(1));
  EXPECT_THAT(moved.neighbours(2), IsEmpty());
  EXPECT_EQ(moved.weight(0, 0), 5);
}

TEST(ModelInput, WithoutNamesFeaturesGoByPosition) {
  Dataset nameless = table();
  nameless.feature_names = {};
  nameless.category_prefixes = {};
  const ModelInput input = input_of(table());
  EXPECT_THAT(aligned(input, nameless).notes, ElementsAre(HasSubstr("the data has no names")));
  EXPECT_THAT(aligned({}, table()).notes, ElementsAre(HasSubstr("the checkpoint has no names")));
  EXPECT_THAT(aligned({}, nameless).notes, ElementsAre(HasSubstr("by their position")));
  const ModelInput twice = input_of(with(std::vector<float>(6, 1), {"a", "a"}));
  EXPECT_THAT(aligned(twice, table()).notes, ElementsAre(HasSubstr("of the same name")));
}

TEST(ModelInput, WhatIsNotFiniteIsNotMovedInSilence) {
  Dataset data = with({1, 0, 2, std::numeric_limits<float>::quiet_NaN(), 1, 3},
                      {"colour=red", "age"}, {6, -1});
  expect_error(ErrorCode::bad_data, {}, [&] { aligned(input_of(table()), data); });
}

TEST(ModelInput, GraphsOfAnotherFormAreSaid) {
  ModelInput input = input_of(table());
  Dataset data = table();
  data.filled_cells = {};
  input.graph = form_of(data.graph);
  EXPECT_EQ(*input.graph, (GraphForm{false, false, false}));
  EXPECT_THAT(aligned(input, data).notes, IsEmpty());
  data.graph = from_edges(3, std::vector<VertexId>{0, 2}, std::vector<VertexId>{1, 2},
                          std::vector<float>{2, 3});
  EXPECT_THAT(
      aligned(input, data).notes,
      ElementsAre(HasSubstr("--symmetrise"), HasSubstr("self loops"), HasSubstr("weights")));
}

/// The learnable data with names, and the same with its columns the other way round.
Dataset named(Dataset data, bool reversed) {
  const Matrix<float>& from = *std::get<DenseFeatures>(data.features);
  auto to = std::make_shared<Matrix<float>>(from.rows(), from.cols());
  std::vector<std::string> names;
  for (std::int64_t j = 0; j < from.cols(); ++j) {
    const std::int64_t source = reversed ? from.cols() - 1 - j : j;
    names.push_back("f" + std::to_string(source));
    for (std::int64_t i = 0; i < from.rows(); ++i) (*to)(i, j) = from(i, source);
  }
  data.features = DenseFeatures(std::move(to));
  data.feature_names = Names(names);
  return data;
}

TEST(ModelInput, TravelsWithTheCheckpoint) {
  const TemporaryFolder folder;
  TrainOptions options = short_training(3);
  options.checkpoint.path = folder / "model";
  Dataset data = named(learnable_vertices(), false);
  data.class_names = Names({"a", "b", "c", "d", "e", "f"});
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  fit(data, config, options);
  const Checkpoint checkpoint = load_checkpoint(options.checkpoint.path);
  ModelInput expected = input_of(data);
  expected.graph = form_of(data.graph);
  EXPECT_EQ(checkpoint.input, expected);
  const Prediction straight = predict(checkpoint, data);
  EXPECT_THAT(straight.notes, IsEmpty());
  const Prediction reversed = predict(checkpoint, named(learnable_vertices(), true));
  EXPECT_TRUE(std::equal(straight.logits.data(), straight.logits.data() + straight.logits.size(),
                         reversed.logits.data()));
  // Going on with the same numbers under other names would forget which is which.
  options.checkpoint.resume = true;
  options.epochs = 4;
  std::vector<std::string> others;
  for (std::int64_t j = 0; j < data.num_features(); ++j) others.push_back("g" + std::to_string(j));
  Dataset renamed = data;
  renamed.feature_names = Names(others);
  expect_error(ErrorCode::invalid_argument, {"other names"},
               [&] { fit(renamed, config, options); });
  fit(data, config, options);
}

Checkpoint classes_called(const std::vector<std::string>& names, std::int64_t outputs) {
  Checkpoint checkpoint;
  checkpoint.outputs = outputs;
  checkpoint.class_names = Names(names);
  return checkpoint;
}

Dataset labelled(const std::vector<std::int64_t>& labels, const std::vector<std::string>& names) {
  Dataset data;
  data.labels = ClassLabels(labels);
  data.class_names = Names(names);
  return data;
}

TEST(TrueClasses, AreMatchedByName) {
  const Checkpoint model = classes_called({"cat", "dog", "fish"}, 3);
  const TrueClasses truth = true_classes(model, labelled({0, 1, -1, 1}, {"dog", "fish"}));
  EXPECT_THAT(truth.classes, ElementsAre(Optional(1), Optional(2), std::nullopt, Optional(2)));
  EXPECT_THAT(truth.notes, IsEmpty());
}

TEST(TrueClasses, UnknownOnesAreNotJudged) {
  const Checkpoint model = classes_called({"cat", "dog"}, 2);
  const TrueClasses truth = true_classes(model, labelled({0, 1, 1}, {"dog", "horse"}));
  EXPECT_THAT(truth.classes, ElementsAre(Optional(1), std::nullopt, std::nullopt));
  EXPECT_THAT(truth.notes, ElementsAre(HasSubstr("'horse' (2)")));
}

TEST(TrueClasses, WithoutNamesGoByNumber) {
  EXPECT_THAT(true_classes(classes_called({}, 3), labelled({2, 0}, {})).classes,
              ElementsAre(Optional(2), Optional(0)));
  // Of the classes 0 and 2 the data calls the second one by the number that the model knows.
  EXPECT_THAT(true_classes(classes_called({}, 3), labelled({1, 0}, {"0", "2"})).classes,
              ElementsAre(Optional(2), Optional(0)));
  const TrueClasses truth = true_classes(classes_called({"cat", "dog"}, 2), labelled({1, 0}, {}));
  EXPECT_THAT(truth.classes, ElementsAre(Optional(1), Optional(0)));
  EXPECT_THAT(truth.notes, ElementsAre(HasSubstr("by number")));
  EXPECT_THAT(true_classes(classes_called({}, 3), Dataset()).classes, IsEmpty());
}

}  // namespace
}  // namespace tessera::train
