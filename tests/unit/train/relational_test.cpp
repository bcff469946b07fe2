// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/random.hpp"
#include "tessera/train/relational.hpp"

namespace tessera {
namespace {

using test::TemporaryFolder;
using testing::expect_error;

constexpr VertexId all_users = 90, num_items = 9;

Names names_of(const char* kind, VertexId count) {
  std::vector<std::string> names;
  for (VertexId v = 0; v < count; ++v) names.push_back(kind + std::to_string(v));
  return Names(names);
}

Dataset kind_of(const char* name, VertexId count) {
  Dataset vertices;
  vertices.name = name;
  vertices.graph = graph_without_edges(count);
  vertices.vertex_names = names_of(name, count);
  return vertices;
}

/// Who buys what: each user two of 9 items, those of its class among 3. With `turned` the items are
/// numbered the other way round. Shops are none, and nothing leads to them.
RelationalGraph shop_graph(VertexId users, bool turned) {
  std::vector<VertexId> buyers, items;
  for (VertexId v = 0; v < users; ++v) {
    for (const VertexId item : {v % 3, 3 + v % 3}) {
      buyers.push_back(v);
      items.push_back(turned ? num_items - 1 - item : item);
    }
  }
  const std::vector<VertexId> none;
  return {{{"user", users}, {"item", num_items}, {"shop", 0}},
          {{"buys", 0, 1}, {"sold_in", 1, 2}},
          {from_coo(num_items, users, items, buyers), from_coo(0, num_items, none, none)}};
}

/// The class of a user is that of the items that it buys. A user's features say nothing, and items
/// have none.
RelationalData shop(bool with_inverse = true, VertexId num_users = all_users, bool turned = false) {
  const Random random(7);
  Dataset users = kind_of("user", num_users), items = kind_of("item", num_items);
  auto features = std::make_shared<Matrix<float>>(num_users, 2);
  std::vector<std::int64_t> labels;
  for (VertexId v = 0; v < num_users; ++v) {
    for (std::int64_t j = 0; j < 2; ++j) {
      (*features)(v, j) = static_cast<float>(random.normal(static_cast<std::uint64_t>(2 * v + j)));
    }
    labels.push_back(v % 10 == 9 ? -1 : v % 3);
  }
  users.features = DenseFeatures(features);
  users.labels = ClassLabels(labels);
  if (turned) {
    std::vector<std::string> names;
    for (VertexId v = num_items; v > 0; --v) names.push_back("item" + std::to_string(v - 1));
    items.vertex_names = Names(names);
  }
  RelationalData data;
  data.name = "shop";
  data.graph = shop_graph(num_users, turned);
  data.kinds = {users, items, kind_of("shop", 0)};
  return with_inverse ? with_inverses(data) : data;
}

train::RelationalOptions short_training(nn::RelationalKind kind = nn::RelationalKind::rgcn) {
  train::RelationalOptions options = train::relational_options();
  options.model.kind = kind;
  options.model.hidden = 16;
  options.training.epochs = 40;
  return options;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void expect_same(const Matrix<float>& a, const Matrix<float>& b) {
  ASSERT_EQ(a.rows(), b.rows());
  ASSERT_EQ(a.cols(), b.cols());
  EXPECT_TRUE(std::equal(a.data(), a.data() + a.size(), b.data()));
}

TEST(RelationalTraining, LearnsWhatNeighboursOfAnotherKindTell) {
  for (const auto kind :
       {nn::RelationalKind::rgcn, nn::RelationalKind::sage, nn::RelationalKind::gat}) {
    SCOPED_TRACE(nn::to_string(kind));
    train::RelationalCheckpoint kept;
    const train::TrainReport report = fit_relational(shop(), short_training(kind), &kept);
    EXPECT_GT(report.test.mean, 0.9);
    EXPECT_EQ(kept.best.evaluation.test, report.runs[0].best.test);
    EXPECT_EQ(std::ssize(kept.split.train), 49);  // of 81 that have a label
    const train::Prediction prediction = predict(kept, shop());
    ASSERT_EQ(prediction.logits.rows(), all_users);
    std::int64_t right = 0;
    for (const std::int64_t item : kept.split.test) {
      right += prediction.classes[static_cast<std::size_t>(item)] == item % 3 ? 1 : 0;
    }
    const double share = static_cast<double>(right) / static_cast<double>(kept.split.test.size());
    EXPECT_DOUBLE_EQ(share, report.test.mean);
    EXPECT_EQ(prediction.item_names[4], "user4");
    EXPECT_EQ(prediction.parts.size(), std::size_t{all_users});
  }
}

TEST(RelationalTraining, WithoutRelationsIntoTheKindNothingIsLearnedOfOthers) {
  train::RelationalOptions options = short_training();
  options.training.epochs = 2;
  const train::TrainReport report = fit_relational(shop(false), options);
  const auto found = std::find_if(report.notes.begin(), report.notes.end(), [](const auto& note) {
    return note.starts_with("no relation leads to 'user'");
  });
  EXPECT_NE(found, report.notes.end());
}

TEST(RelationalTraining, IsTheSameForAnyNumberOfThreadsAndInRuns) {
  train::RelationalOptions options = short_training();
  options.training.epochs = 6;
  options.training.runs = 2;
  std::vector<double> losses[2];
  std::vector<train::StoredTensor> weights[2];
  const int before = num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    train::RelationalCheckpoint kept;
    const train::TrainReport report = fit_relational(shop(), options, &kept);
    const std::size_t side = threads == 1 ? 0 : 1;
    ASSERT_EQ(report.runs.size(), 2u);
    for (const train::RunReport& run : report.runs) {
      for (const train::EpochRecord& epoch : run.curve) losses[side].push_back(epoch.loss);
    }
    weights[side] = kept.weights;
  }
  set_num_threads(before);
  EXPECT_EQ(losses[0], losses[1]);
  ASSERT_EQ(weights[0].size(), weights[1].size());
  for (std::size_t i = 0; i < weights[0].size(); ++i) {
    EXPECT_EQ(weights[0][i].array, weights[1][i].array);
  }
}

TEST(RelationalTraining, OnDeviceIsThatOfTheCpu) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  step::Placement gpu;
  gpu.memory = &default_memory({DeviceKind::cuda, 0});
  for (const auto kind :
       {nn::RelationalKind::rgcn, nn::RelationalKind::sage, nn::RelationalKind::gat}) {
    SCOPED_TRACE(nn::to_string(kind));
    train::RelationalOptions options = short_training(kind);
    options.training.epochs = 10;
    train::RelationalCheckpoint kept;
    const train::TrainReport on_cpu = fit_relational(shop(), options, &kept);
    options.training.placement = gpu;
    const train::TrainReport on_gpu = fit_relational(shop(), options);
    for (std::size_t i = 0; i < on_cpu.runs[0].curve.size(); ++i) {
      EXPECT_NEAR(on_gpu.runs[0].curve[i].loss, on_cpu.runs[0].curve[i].loss, 1e-2) << i;
    }
    const Matrix<float> expected = predict(kept, shop()).logits;
    const Matrix<float> found = predict(kept, shop(), gpu).logits;
    for (std::int64_t k = 0; k < expected.size(); ++k) {
      EXPECT_NEAR(found.data()[k], expected.data()[k], 1e-3 * (1 + std::abs(expected.data()[k])));
    }
  }
}

/// A short training that is kept in a file.
struct KeptModel {
  KeptModel() {
    train::RelationalOptions options = short_training();
    options.training.epochs = 5;
    options.training.normalise = train::Normalise::standard;
    fit_relational(shop(), options, &checkpoint);
    path = folder / "model.tsr";
    save(checkpoint, path);
  }

  TemporaryFolder folder;
  train::RelationalCheckpoint checkpoint;
  std::string path;
};

TEST(RelationalCheckpoint, ComesBackAsItWas) {
  const KeptModel kept;
  ASSERT_TRUE(train::holds_relational_checkpoint(kept.path));
  EXPECT_FALSE(train::holds_checkpoint(kept.path));
  const train::RelationalCheckpoint loaded = train::load_relational_checkpoint(kept.path);
  EXPECT_EQ(loaded.model, kept.checkpoint.model);
  EXPECT_EQ(loaded.relations, kept.checkpoint.relations);
  EXPECT_EQ(loaded.kinds[0].normalisation, kept.checkpoint.kinds[0].normalisation);
  EXPECT_EQ(loaded.kinds[1].vertices, kept.checkpoint.kinds[1].vertices);
  EXPECT_EQ(loaded.split, kept.checkpoint.split);
  EXPECT_EQ(loaded.best.epoch, kept.checkpoint.best.epoch);
  expect_same(predict(loaded, shop()).logits, predict(kept.checkpoint, shop()).logits);
  const std::string again = kept.folder / "again.tsr";
  save(loaded, again);
  EXPECT_EQ(bytes_of(again), bytes_of(kept.path));
}

TEST(RelationalCheckpoint, FindsVerticesByTheirNames) {
  const KeptModel kept;
  const Matrix<float> whole = predict(kept.checkpoint, shop()).logits;
  const Matrix<float> turned = predict(kept.checkpoint, shop(true, all_users, true)).logits;
  for (std::int64_t k = 0; k < whole.size(); ++k) {
    EXPECT_NEAR(turned.data()[k], whole.data()[k], 1e-5);
  }
}

TEST(RelationalCheckpoint, PredictsOtherVerticesOfKindsWithFeatures) {
  const KeptModel kept;
  for (const VertexId users : {1, 16, 2 * all_users}) {
    const train::Prediction prediction = predict(kept.checkpoint, shop(true, users));
    ASSERT_EQ(prediction.logits.rows(), users);
    const float* const logits = prediction.logits.data();
    EXPECT_TRUE(std::all_of(logits, logits + prediction.logits.size(),
                            [](float value) { return std::isfinite(value); }));
  }
}

TEST(RelationalCheckpoint, DataThatDoesNotFitIsAnError) {
  const auto invalid = ErrorCode::invalid_argument;
  const KeptModel kept;
  expect_error(invalid, {"the data lacks 'rev_buys' from 'item' to 'user'", "--symmetrise"},
               [&] { predict(kept.checkpoint, shop(false)); });
  RelationalData data = shop();
  data.kinds[1].vertex_names = names_of("thing", num_items);
  expect_error(invalid, {"item 'thing0' has no features and was not there in training"},
               [&] { predict(kept.checkpoint, data); });
  data = shop();
  data.kinds[0].features = DenseFeatures(std::make_shared<Matrix<float>>(all_users, 3, 0.0f));
  expect_error(invalid, {"'user' have 3 features, the model was trained with 2"},
               [&] { predict(kept.checkpoint, data); });
  data = shop();
  data.kinds[0].labels = {};
  train::RelationalOptions options = short_training();
  expect_error(ErrorCode::bad_data, {"no kind of vertices has labels"},
               [&] { fit_relational(data, options); });
  options.training.batching = train::Batching::clusters;
  expect_error(invalid, {"is learned as a whole"}, [&] { fit_relational(shop(), options); });
}

TEST(RelationalCheckpoint, DamagedFilesAreErrors) {
  const KeptModel kept;
  const std::string whole = bytes_of(kept.path);
  const std::string damaged = kept.folder / "damaged.tsr";
  for (std::size_t place = 9; place < whole.size(); place += 97) {
    std::string bytes = whole;
    bytes[place] = static_cast<char>(bytes[place] ^ 0x41);
    test::write_file(damaged, bytes);
    EXPECT_THROW(train::load_relational_checkpoint(damaged), Error) << place;
    test::write_file(damaged, whole.substr(0, place));
    EXPECT_THROW(train::load_relational_checkpoint(damaged), Error) << place;
  }
  train::RelationalCheckpoint liar = kept.checkpoint;
  liar.model.hidden = std::int64_t{1} << 40;
  save(liar, damaged);
  expect_error(ErrorCode::bad_data, {"its tensors are not those of its model"},
               [&] { train::load_relational_checkpoint(damaged); });
  liar = kept.checkpoint;
  liar.kinds[1].embedded = 4;
  save(liar, damaged);
  expect_error(ErrorCode::bad_data, {"the kind 'item' contradicts itself"},
               [&] { train::load_relational_checkpoint(damaged); });
  liar = kept.checkpoint;
  liar.class_values.push_back(9);
  save(liar, damaged);
  expect_error(ErrorCode::bad_data, {"classes for 3 outputs"},
               [&] { train::load_relational_checkpoint(damaged); });
  liar = kept.checkpoint;
  liar.weights.pop_back();
  save(liar, damaged);
  EXPECT_THROW(train::load_relational_checkpoint(damaged), Error);
}

}  // namespace
}  // namespace tessera
