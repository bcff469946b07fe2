// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/predict.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/training_data.hpp"
#include "tessera/io/index_file.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/problem.hpp"

namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_multi_labels;
using test::learnable_vertices;
using test::short_training;
using test::small_model;
using test::TemporaryFolder;
using testing::expect_error;

struct Trained {
  TrainReport report;
  Checkpoint checkpoint;
};

Trained trained(const Dataset& dataset, const nn::ModelConfig& config) {
  const TemporaryFolder folder;
  TrainOptions options = short_training(30);
  options.runs = 2;
  options.checkpoint.path = folder / "model";
  Trained result;
  result.report = fit(dataset, config, options);
  result.checkpoint = load_checkpoint(options.checkpoint.path);
  return result;
}

TEST(Predict, gives_back_the_accuracy_of_the_best_run) {
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::gin, nn::ModelKind::gatv2}) {
    const Dataset dataset = learnable_vertices();
    const Trained model = trained(dataset, small_model(kind));
    const Prediction prediction = predict(model.checkpoint, dataset);
    ASSERT_EQ(prediction.classes.size(), 120u);
    const ClassLabels labels = std::get<ClassLabels>(dataset.labels);
    double right = 0;
    for (const std::int64_t v : dataset.test) {
      right += prediction.classes[static_cast<std::size_t>(v)] == labels[v] ? 1 : 0;
    }
    const BestEpoch kept = best_epoch(model.checkpoint);
    const auto best = static_cast<std::size_t>(kept.run);
    EXPECT_DOUBLE_EQ(right / static_cast<double>(dataset.test.size()),
                     model.report.runs[best].best.test);
    EXPECT_EQ(kept.evaluation, model.report.runs[best].best);
  }
}

TEST(Predict, knows_the_items_that_the_model_was_tested_on) {
  Dataset dataset = learnable_vertices();
  dataset.train = dataset.validation = dataset.test = SharedArray<std::int64_t>();
  const TemporaryFolder folder;
  TrainOptions options = short_training(20);
  options.seed = 5;
  options.checkpoint.path = folder / "model";
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  const TrainReport report = fit(dataset, config, options);
  const Checkpoint checkpoint = load_checkpoint(options.checkpoint.path);
  EXPECT_EQ(checkpoint.split, prepare(dataset, config, options).split);
  const std::vector<std::int64_t> items = test_items(checkpoint, dataset);
  ASSERT_EQ(items, checkpoint.split.test);
  const Prediction prediction = predict(checkpoint, dataset);
  const ClassLabels labels = std::get<ClassLabels>(dataset.labels);
  double right = 0;
  for (const std::int64_t v : items) {
    right += prediction.classes[static_cast<std::size_t>(v)] == labels[v] ? 1 : 0;
  }
  EXPECT_DOUBLE_EQ(right / static_cast<double>(items.size()), report.runs[0].best.test);
  EXPECT_TRUE(test_items(checkpoint, learnable_vertices(120, 2)).empty()) << "another graph";
  Checkpoint damaged = checkpoint;
  damaged.split.test.push_back(120);
  expect_error(ErrorCode::bad_data, {"item 120 of 120"}, [&] { test_items(damaged, dataset); });
  damaged.split.test.back() = -1;
  expect_error(ErrorCode::bad_data, {"item -1"}, [&] { validate(damaged, "checkpoint"); });
}

TEST(Predict, has_the_split_of_the_fold_that_was_best) {
  const Dataset dataset = learnable_vertices();
  const TemporaryFolder folder;
  TrainOptions options = short_training(8);
  options.folds = 4;
  options.runs = 4;
  options.checkpoint.path = folder / "model";
  fit(dataset, small_model(nn::ModelKind::gcn), options);
  const Checkpoint checkpoint = load_checkpoint(options.checkpoint.path);
  const ClassLabels labels = std::get<ClassLabels>(dataset.labels);
  EXPECT_EQ(checkpoint.split,
            fold_split(labels.span(), 4, best_epoch(checkpoint).run, options.seed));
}

TEST(Predict, needs_no_labels_and_no_split) {
  Dataset dataset = learnable_vertices();
  const Trained model = trained(dataset, small_model(nn::ModelKind::gcn));
  const Prediction with = predict(model.checkpoint, dataset);
  dataset.labels = std::monostate();
  dataset.train = dataset.validation = dataset.test = SharedArray<std::int64_t>();
  EXPECT_EQ(predict(model.checkpoint, dataset).classes, with.classes);
}

TEST(Predict, weights_are_kept_without_a_file) {
  const Dataset dataset = learnable_vertices();
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  const Trained with_file = trained(dataset, config);
  TrainOptions options = short_training(30);
  options.runs = 2;
  options.checkpoint.kept = std::make_shared<Checkpoint>();
  const TrainReport report = fit(dataset, config, options);
  const Checkpoint& kept = *options.checkpoint.kept;
  EXPECT_EQ(report.test.mean, with_file.report.test.mean);
  EXPECT_EQ(kept.split, with_file.checkpoint.split);
  EXPECT_EQ(best_epoch(kept).evaluation, best_epoch(with_file.checkpoint).evaluation);
  const Prediction expected = predict(with_file.checkpoint, dataset);
  const Prediction prediction = predict(kept, dataset);
  EXPECT_TRUE(std::equal(prediction.logits.span().begin(), prediction.logits.span().end(),
                         expected.logits.span().begin()));
  options.parallel_runs = true;
  expect_error(ErrorCode::invalid_argument, {"no weights are kept", "one after the other"},
               [&] { fit(dataset, config, options); });
}

TEST(Predict, precomputed_models_propagate_again) {
  nn::ModelConfig config = small_model(nn::ModelKind::sgc);
  config.precomputed = true;
  const Dataset dataset = learnable_vertices();
  const Trained model = trained(dataset, config);
  const Prediction prediction = predict(model.checkpoint, dataset);
  EXPECT_EQ(prediction.classes.size(), 120u);
}

TEST(Predict, embeddings_have_the_hidden_width) {
  const Dataset dataset = learnable_vertices();
  const Trained model = trained(dataset, small_model(nn::ModelKind::gcn));
  PredictOptions options;
  options.embeddings = true;
  const Prediction prediction = predict(model.checkpoint, dataset, options);
  EXPECT_EQ(prediction.embeddings.rows(), 120);
  EXPECT_EQ(prediction.embeddings.cols(), 8);
  EXPECT_EQ(predict(model.checkpoint, dataset).embeddings.size(), 0);
}

TEST(Predict, a_model_of_one_layer_has_no_embeddings) {
  const Dataset dataset = learnable_vertices();
  nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  config.layers = 1;
  const Trained model = trained(dataset, config);
  PredictOptions options;
  options.embeddings = true;
  for (const std::vector<std::int64_t>& bits : {std::vector<std::int64_t>{}, {8}}) {
    options.bits = bits;
    expect_error(ErrorCode::unsupported, {"a model of one layer has no embeddings"},
                 [&] { predict(model.checkpoint, dataset, options); });
  }
}

TEST(Predict, graphs_get_the_names_of_their_classes) {
  const Dataset dataset = learnable_graphs();
  const Trained model = trained(dataset, small_model(nn::ModelKind::gin, true));
  const Prediction prediction = predict(model.checkpoint, dataset);
  ASSERT_EQ(prediction.classes.size(), 60u);
  for (const std::int64_t label : prediction.classes) EXPECT_TRUE(label == 1 || label == 2);
  expect_error(ErrorCode::invalid_argument, {"graph ids"},
               [&] { predict(model.checkpoint, learnable_vertices()); });
}

TEST(Predict, features_of_another_width_are_an_error) {
  const Trained model = trained(learnable_vertices(), small_model(nn::ModelKind::gcn));
  Dataset other = learnable_vertices();
  other.features = DenseFeatures(std::make_shared<Matrix<float>>(120, 4, 1.0f));
  expect_error(ErrorCode::invalid_argument, {"has 4 features", "model 9"},
               [&] { predict(model.checkpoint, other); });
}

TEST(Predict, tensors_of_another_shape_are_an_error) {
  Trained model = trained(learnable_vertices(), small_model(nn::ModelKind::gcn));
  model.checkpoint.weights[0].array.shape[0] += 1;
  expect_error(ErrorCode::bad_data, {"is no tensor"},
               [&] { predict(model.checkpoint, learnable_vertices()); });
  model.checkpoint.weights.pop_back();
  expect_error(ErrorCode::bad_data, {}, [&] { predict(model.checkpoint, learnable_vertices()); });
  model.checkpoint.weights.clear();
  expect_error(ErrorCode::invalid_argument, {"no trained weights"},
               [&] { predict(model.checkpoint, learnable_vertices()); });
}

TEST(Predict, writes_texts_and_arrays) {
  const TemporaryFolder folder;
  const Trained model = trained(learnable_vertices(), small_model(nn::ModelKind::gcn));
  const Prediction prediction = predict(model.checkpoint, learnable_vertices());
  save(prediction, folder / "classes.txt");
  EXPECT_EQ(io::read_index_file(folder / "classes.txt"), prediction.classes);
  save(prediction, folder / "all.npz");
  EXPECT_NE(test::read_file(folder / "all.npz").find("logits.npy"), std::string::npos);
  save(prediction, folder / "classes.csv");
  EXPECT_TRUE(test::read_file(folder / "classes.csv")
                  .starts_with("id,label,probability,true_label,split,p(0),p(1),p(2)\n"));
  expect_error(ErrorCode::invalid_argument, {".csv, .json, .npz or .txt"},
               [&] { save(prediction, folder / "classes.xls"); });
}

TEST(Predict, names_that_a_spreadsheet_would_run_get_an_apostrophe) {
  const std::vector<std::pair<std::string, std::string>> fields = {
      {"=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""},
      {"+SUM(1)", "'+SUM(1)"},
      {"-A1", "'-A1"},
      {"@x", "'@x"},
      {"\t=1", "\"'\t=1\""},
      {"\r=1", "\"'\r=1\""},
      {"=1,\"2\"", "\"'=1,\"\"2\"\"\""},
      {"-", "'-"},
      {"-inf", "'-inf"},
      {"-1+A1", "'-1+A1"},
      {"-1", "-1"},
      {"+1.5e-3", "+1.5e-3"},
      {"-.5", "-.5"},
      {"a=b", "a=b"},
      {"a;=b", "\"a;=b\""},
      {"'=a", "'=a"},
  };
  Prediction prediction;
  std::vector<std::string> names;
  std::string expected = "id,label,probability,p(-1)\n";
  for (const auto& [name, field] : fields) {
    names.push_back(name);
    expected += field + ",-1,1,1\n";
  }
  const auto count = static_cast<std::int64_t>(fields.size());
  prediction.item_names = Names(names);
  prediction.class_names = Names({"-1"});
  prediction.classes.assign(fields.size(), 0);
  prediction.class_values = {0};
  prediction.logits = Matrix<float>(count, 1);
  std::fill_n(prediction.logits.data(), count, 0.0F);
  const TemporaryFolder folder;
  save(prediction, folder / "classes.csv");
  EXPECT_EQ(test::read_file(folder / "classes.csv"), expected);
}

TEST(Predict, several_labels_have_no_class_a_line) {
  const TemporaryFolder folder;
  Dataset dataset = learnable_multi_labels();
  dataset.class_names = Names({"first", "second", "third"});
  const Trained model = trained(dataset, small_model(nn::ModelKind::gcn));
  const Prediction prediction = predict(model.checkpoint, dataset);
  EXPECT_TRUE(prediction.multi_label);
  EXPECT_TRUE(prediction.classes.empty());
  EXPECT_EQ(prediction.class_names, dataset.class_names);
  EXPECT_EQ(prediction.true_labels, std::get<MultiLabels>(dataset.labels));
  save(prediction, folder / "all.npz");
  save(prediction, folder / "all.csv");
  EXPECT_TRUE(test::read_file(folder / "all.csv").starts_with("id,split,label(first),p(first),"));
  expect_error(ErrorCode::invalid_argument, {"use .csv, .json or .npz"},
               [&] { save(prediction, folder / "classes.txt"); });
}

TEST(Predict, knows_what_the_data_says_of_items) {
  Dataset dataset = learnable_vertices();
  const Trained model = trained(dataset, small_model(nn::ModelKind::gcn));
  const Prediction known = predict(model.checkpoint, dataset);
  EXPECT_EQ(known.class_values, (std::vector<std::int64_t>{0, 1, 2}));
  const ClassLabels labels = std::get<ClassLabels>(dataset.labels);
  ASSERT_EQ(known.true_classes.size(), 120u);
  for (std::int64_t v = 0; v < 120; ++v) {
    EXPECT_EQ(known.true_classes[static_cast<std::size_t>(v)], labels[v]);
    constexpr SplitPart parts[] = {SplitPart::train, SplitPart::validation, SplitPart::test};
    EXPECT_EQ(known.parts[static_cast<std::size_t>(v)], parts[v % 3]);
  }
  // On another graph the split is that of its own data, if it has one.
  Dataset other = learnable_vertices(120, 2);
  other.labels = std::monostate();
  EXPECT_EQ(predict(model.checkpoint, other).parts, known.parts);
  other.train = other.validation = other.test = SharedArray<std::int64_t>();
  const Prediction unknown = predict(model.checkpoint, other);
  EXPECT_TRUE(unknown.true_classes.empty());
  EXPECT_TRUE(unknown.parts.empty());
}

}  // namespace
}  // namespace tessera::train
