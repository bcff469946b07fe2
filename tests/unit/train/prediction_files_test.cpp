// SPDX-License-Identifier: Apache-2.0
// What stands in the files of predictions, from logits made by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "tessera/train/predict.hpp"

namespace tessera::train {
namespace {

using test::read_file;
using test::TemporaryFolder;
using testing::expect_error;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Matrix<float> matrix(std::int64_t rows, std::int64_t cols, const std::vector<float>& values) {
  Matrix<float> result(rows, cols);
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

/// Three items; the model could not decide on the last.
Prediction of_classes() {
  Prediction prediction;
  prediction.logits = matrix(3, 2, {0, 0, -200, 200, nan, 0});
  prediction.classes = {4, 7, -1};
  prediction.class_values = {4, 7};
  return prediction;
}

/// The same with everything that data may know.
Prediction with_names() {
  Prediction prediction = of_classes();
  prediction.item_names = Names({"ann", "bob, jr", "=cmd"});
  prediction.class_names = Names({"", "", "", "", "no", "", "", "y\"es"});
  prediction.true_classes = {7, {}, 4};
  prediction.parts = {SplitPart::train, SplitPart::test, SplitPart::none};
  return prediction;
}

Prediction of_labels() {
  Prediction prediction;
  prediction.multi_label = true;
  prediction.logits = matrix(2, 2, {0, 200, nan, -200});
  prediction.class_values = {0, 1};
  prediction.class_names = Names({"cat", "dog"});
  return prediction;
}

std::string written(const Prediction& prediction, const std::string& name,
                    PredictionForm form = PredictionForm::full) {
  const TemporaryFolder folder;
  save(prediction, folder / name, form);
  return read_file(folder / name);
}

TEST(PredictionFiles, tables_have_a_column_for_each_class) {
  EXPECT_EQ(written(of_classes(), "p.csv"),
            "id,label,probability,p(4),p(7)\n"
            "0,4,0.5,0.5,0.5\n"
            "1,7,1,1.91517e-174,1\n"
            "2,,,,\n");
}

TEST(PredictionFiles, tables_have_what_is_known) {
  EXPECT_EQ(written(with_names(), "p.csv"),
            "id,label,probability,true_label,split,p(no),\"p(y\"\"es)\"\n"
            "ann,no,0.5,\"y\"\"es\",train,0.5,0.5\n"
            "\"bob, jr\",\"y\"\"es\",1,,test,1.91517e-174,1\n"
            "'=cmd,,,no,,,\n");
  EXPECT_EQ(written(with_names(), "p.csv", PredictionForm::brief),
            "id,label,probability\n"
            "ann,no,0.5\n"
            "\"bob, jr\",\"y\"\"es\",1\n"
            "'=cmd,,\n");
}

TEST(PredictionFiles, tables_of_several_labels) {
  Prediction prediction = of_labels();
  EXPECT_EQ(written(prediction, "p.csv"),
            "id,label(cat),p(cat),label(dog),p(dog)\n"
            "0,0,0.5,1,1\n"
            "1,,,0,1.3839e-87\n");
  prediction.true_labels = MultiLabels(std::make_shared<Matrix<float>>(matrix(2, 2, {0, 1, 1, 0})));
  prediction.parts = {SplitPart::validation, SplitPart::none};
  EXPECT_EQ(written(prediction, "p.csv"),
            "id,split,label(cat),p(cat),true_label(cat),label(dog),p(dog),true_label(dog)\n"
            "0,val,0,0.5,0,1,1,1\n"
            "1,,,,1,0,1.3839e-87,0\n");
  EXPECT_EQ(written(prediction, "p.csv", PredictionForm::brief),
            "id,label(cat),label(dog)\n"
            "0,0,1\n"
            "1,,0\n");
}

TEST(PredictionFiles, json_has_the_names_as_they_are) {
  EXPECT_EQ(written(with_names(), "p.json"),
            "{\n\"task\": \"node\",\n\"multi_label\": false,\n\"classes\": [\"no\", \"y\\\"es\"],\n"
            "\"items\": [\n"
            "{\"id\": \"ann\", \"label\": \"no\", \"probability\": 0.5, \"true_label\": "
            "\"y\\\"es\", \"split\": \"train\", \"probabilities\": [0.5, 0.5]},\n"
            "{\"id\": \"bob, jr\", \"label\": \"y\\\"es\", \"probability\": 1, \"true_label\": "
            "null, \"split\": \"test\", \"probabilities\": [1.91517e-174, 1]},\n"
            "{\"id\": \"=cmd\", \"label\": null, \"probability\": null, \"true_label\": \"no\", "
            "\"split\": null, \"probabilities\": [null, null]}\n"
            "]\n}\n");
  EXPECT_EQ(written(of_classes(), "p.json", PredictionForm::brief),
            "{\n\"task\": \"node\",\n\"multi_label\": false,\n\"classes\": [\"4\", \"7\"],\n"
            "\"items\": [\n"
            "{\"id\": 0, \"label\": \"4\", \"probability\": 0.5},\n"
            "{\"id\": 1, \"label\": \"7\", \"probability\": 1},\n"
            "{\"id\": 2, \"label\": null, \"probability\": null}\n"
            "]\n}\n");
}

TEST(PredictionFiles, json_of_several_labels_lists_those_that_are_on) {
  Prediction prediction = of_labels();
  prediction.true_labels = MultiLabels(std::make_shared<Matrix<float>>(matrix(2, 2, {1, 1, 0, 0})));
  EXPECT_EQ(written(prediction, "p.json"),
            "{\n\"task\": \"node\",\n\"multi_label\": true,\n\"classes\": [\"cat\", \"dog\"],\n"
            "\"items\": [\n"
            "{\"id\": 0, \"labels\": [\"dog\"], \"true_labels\": [\"cat\", \"dog\"], "
            "\"probabilities\": [0.5, 1]},\n"
            "{\"id\": 1, \"labels\": [], \"true_labels\": [], \"probabilities\": [null, "
            "1.3839e-87]}\n"
            "]\n}\n");
  EXPECT_NE(written(prediction, "p.json", PredictionForm::brief)
                .find("{\"id\": 0, \"labels\": [\"dog\"]},\n"),
            std::string::npos);
}

TEST(PredictionFiles, no_items_make_empty_files) {
  Prediction prediction;
  prediction.logits = Matrix<float>(0, 2);
  prediction.class_values = {0, 1};
  EXPECT_EQ(written(prediction, "p.csv"), "id,label,probability,p(0),p(1)\n");
  EXPECT_NE(written(prediction, "p.json").find("\"items\": [\n]"), std::string::npos);
  EXPECT_FALSE(written(prediction, "p.npz").empty());
}

TEST(PredictionFiles, long_tables_are_whole_and_in_order) {
  constexpr std::int64_t items = 70000;
  Prediction prediction;
  prediction.logits = Matrix<float>(items, 1, 0.0f);
  prediction.classes.assign(items, 0);
  prediction.class_values = {0};
  std::string expected = "id,label,probability\n";
  for (std::int64_t i = 0; i < items; ++i) expected += std::to_string(i) + ",0,1\n";
  EXPECT_TRUE(written(prediction, "p.csv", PredictionForm::brief) == expected);
}

TEST(PredictionFiles, embeddings_have_the_names_of_their_items) {
  const TemporaryFolder folder;
  Prediction prediction = with_names();
  prediction.embeddings = matrix(3, 2, {0.1f, 1, -2.5f, 3e-20f, 0, 1e20f});
  save_embeddings(prediction, folder / "e.csv");
  EXPECT_EQ(read_file(folder / "e.csv"),
            "id,e0,e1\n"
            "ann,0.1,1\n"
            "\"bob, jr\",-2.5,3e-20\n"
            "'=cmd,0,1e+20\n");
  save_embeddings(prediction, folder / "e.npz");
  EXPECT_NE(read_file(folder / "e.npz").find("id.npy"), std::string::npos);
  expect_error(ErrorCode::invalid_argument, {"embeddings", ".csv or .npz"},
               [&] { save_embeddings(prediction, folder / "e.txt"); });
}

TEST(PredictionFiles, texts_that_would_be_mostly_padding_are_refused) {
  constexpr std::int64_t items = 3000;
  Prediction prediction;
  prediction.logits = Matrix<float>(items, 1, 0.0f);
  prediction.classes.assign(items, 0);
  prediction.class_values = {0};
  std::vector<std::string> names(items, "a");
  names.back() = std::string(100000, 'b');
  prediction.item_names = Names(names);
  const TemporaryFolder folder;
  expect_error(ErrorCode::unsupported, {"3000 texts of up to 100000", ".csv or .json"},
               [&] { save(prediction, folder / "p.npz"); });
  EXPECT_EQ(folder.num_files(), 0u);
}

}  // namespace
}  // namespace tessera::train
