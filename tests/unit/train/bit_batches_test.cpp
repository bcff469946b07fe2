// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/bit_batches.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/training_data.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/ops/rounding.hpp"
#include "train/bit_features.hpp"

namespace tessera::train {
namespace {

using testing::expect_error;

/// A graph in parts with a model that has seen it.
struct Scene {
  Scene(nn::ModelKind kind, std::int64_t hidden, int bits, VertexId vertices = 700,
        std::int32_t parts = 9)
      : features(vertices, 20) {
    generate::BlockModel drawn;
    drawn.vertices = vertices;
    drawn.communities = 5;
    drawn.mean_degree = 8;
    drawn.seed = 3;
    const Graph whole = without_self_loops(generate::build(drawn));
    partition = tessera::partition(whole, {.parts = parts, .method = "multilevel"});
    graph = within_parts(whole, partition);
    EXPECT_EQ(graph.num_edges() < whole.num_edges(), parts > 1);
    const Random random(5);
    for (std::int64_t i = 0; i < features.size(); ++i) {
      features.data()[i] = static_cast<float>(random.uniform(static_cast<std::uint64_t>(i))) - 0.3f;
    }
    Matrix<float> range(1, 2);
    ops::round_to_codes(features, bits, ops::RoundingRange::matrix, range, features);
    nn::ModelConfig config = test::small_model(kind);
    config.layers = 3;
    config.hidden = hidden;
    config.bits = {bits};
    nn::Model model(config, 20, 7, 1);
    step::Topology topology(graph);
    step::Tensor input;
    input.upload(features);
    step::Context context;
    context.graph = &topology;
    const step::Tensor& logits = model.forward(input, context);
    rounded = Matrix<float>(logits.rows(), logits.cols());
    std::copy_n(logits.as<float>().data, logits.size(), rounded.data());
    steps = model.bit_steps();
    steps.set_feature_range(nn::affine_of(range.span(), bits));
  }

  Graph graph;
  Partition partition;
  Matrix<float> features;
  Matrix<float> rounded;  ///< logits of the model with rounded numbers
  nn::BitSteps steps;
};

/// The same steps over the edges of the whole graph.
Matrix<float> over_edges(const Scene& scene) {
  const auto summing = std::find_if(scene.steps.steps().begin(), scene.steps.steps().end(),
                                    [](const nn::BitStep& step) { return step.aggregates; });
  const nn::BitAdjacency adjacency = nn::bit_adjacency(summing->adjacency(scene.graph));
  const nn::BitStep& first = scene.steps.steps().front();
  BitFeatures codes(scene.graph.num_rows(), first.input, first.in);
  codes.take_scaled(scene.features, first.aggregates ? std::span<const float>(adjacency.col_scale)
                                                     : std::span<const float>());
  const auto column = [&](const std::vector<float>& numbers) {
    return numbers.empty() ? MatrixView<const float>()
                           : MatrixView<const float>(numbers.data(), scene.graph.num_rows(), 1);
  };
  nn::BitVertices vertices;
  vertices.features = codes.codes();
  vertices.row_scale = column(adjacency.row_scale);
  vertices.col_scale = column(adjacency.col_scale);
  vertices.row_weights = column(adjacency.row_weights);
  nn::BitNetwork network(scene.steps, adjacency.pattern);
  Matrix<float> values(scene.graph.num_rows(), network.output_width());
  network.run(vertices, values);
  return values;
}

/// The numbers of all vertices.
Matrix<float> gathered(const BitBatches& batches, const BitBatchRunner& runner, VertexId vertices,
                       std::int64_t width) {
  Matrix<float> result(vertices, width, std::nanf(""));
  for (std::int64_t batch = 0; batch < batches.size(); ++batch) {
    const Matrix<float> values = runner.values(batch);
    const auto members = batches.members(batch);
    for (std::size_t row = 0; row < members.size(); ++row) {
      if (members[row] < 0) continue;
      std::copy_n(values.row(static_cast<std::int64_t>(row)), width, result.row(members[row]));
    }
  }
  return result;
}

/// `mean`: of the distance, as a share of the greatest number. Codes fall to the other side of a
/// step where sums of few different numbers lie in the middle of it, and fp32 decides.
void expect_close(const Matrix<float>& computed, const Matrix<float>& expected, double mean) {
  double largest = 0;
  for (const float value : expected.span()) largest = std::max<double>(largest, std::abs(value));
  double sum = 0;
  for (std::int64_t i = 0; i < computed.size(); ++i) {
    const double off = std::abs(static_cast<double>(computed.data()[i]) - expected.data()[i]);
    sum += off;
  }
  EXPECT_LE(sum / static_cast<double>(computed.size()), mean * largest);
  EXPECT_GT(largest, 0);
}

class BitBatchesOf : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(BitBatchesOf, SayWhatTheWholeGraphSays) {
  struct Case {
    std::int64_t hidden;
    int bits;
    std::int32_t parts;
    bool lists;  ///< of sources: parts of more than 128 vertices, sums of up to 8 bits
  };
  constexpr Case cases[] = {{6, 8, 9, false},  {32, 8, 9, false}, {6, 4, 9, false},
                            {32, 4, 9, false}, {6, 8, 2, true},   {32, 4, 2, true},
                            {16, 12, 2, false}};
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::gin}) {
    for (const auto& [hidden, bits, parts, lists] : cases) {
      SCOPED_TRACE(std::string(nn::to_string(kind)) + ", " + std::to_string(hidden) + ", " +
                   std::to_string(bits) + " bits, " + std::to_string(parts) + " parts");
      const Scene scene(kind, hidden, bits, 700, parts);
      const BitBatches batches(scene.graph, scene.partition, GetParam(), scene.features,
                               scene.steps);
      EXPECT_EQ(batches.has_lists(), lists);
      EXPECT_EQ(batches.size(), (parts + GetParam() - 1) / GetParam());
      BitBatchRunner runner(scene.steps, batches);
      runner.run();
      EXPECT_EQ(runner.bytes_copied(), 0) << "nothing has to be copied on the CPU";
      const Matrix<float> computed = gathered(batches, runner, 700, 7);
      const double half_a_step = 0.5 / ((1 << bits) - 1);
      expect_close(computed, scene.rounded, half_a_step);
      const Matrix<float> whole = over_edges(scene);
      if (kind == nn::ModelKind::gcn) {
        EXPECT_TRUE(std::equal(whole.span().begin(), whole.span().end(), computed.data()));
      } else {
        expect_close(computed, whole, half_a_step);
      }
    }
  }
}

/// Layers of at most 128 columns with codes of at most 8 bits are computed together, in one kernel
/// where parts have at most 128 vertices and in one for each sum where edges come as lists; others
/// product by product.
struct OnDeviceCase {
  std::int64_t hidden;
  int bits;
  std::int32_t parts;
  bool together;
};
constexpr OnDeviceCase on_device_cases[] = {
    {16, 8, 9, true},  {16, 4, 9, true},  {16, 2, 9, true},   {16, 1, 9, true},
    {6, 8, 9, true},   {100, 8, 9, true}, {100, 3, 9, true},  {16, 12, 9, false},
    {16, 8, 2, true},  {16, 2, 2, true},  {6, 1, 2, true},    {64, 4, 2, true},
    {100, 8, 2, true}, {100, 3, 1, true}, {130, 4, 9, false}, {130, 8, 2, false},
    {16, 12, 2, false}};

TEST_P(BitBatchesOf, OnDeviceAreThoseOfTheCpu) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Device gpu{DeviceKind::cuda, 0};
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::gin}) {
    for (const auto& [hidden, bits, parts, together] : on_device_cases) {
      const Scene scene(kind, hidden, bits, 700, parts);
      const BitBatches here(scene.graph, scene.partition, GetParam(), scene.features, scene.steps);
      const BitBatches there(scene.graph, scene.partition, GetParam(), scene.features, scene.steps,
                             gpu);
      BitBatchRunner on_cpu(scene.steps, here);
      nn::BitNetworkOptions options;
      options.plans.device = gpu;
      BitBatchRunner on_gpu(scene.steps, there, options);
      EXPECT_EQ(on_gpu.explain().summary.find("bit_chain") != std::string::npos, together);
      on_cpu.run();
      for (int run = 0; run < 2; ++run) {
        on_gpu.run();
        for (std::int64_t batch = 0; batch < here.size(); ++batch) {
          const Matrix<float> expected = on_cpu.values(batch);
          const Matrix<float> computed = on_gpu.values(batch);
          EXPECT_TRUE(std::equal(computed.span().begin(), computed.span().end(), expected.data()))
              << nn::to_string(kind) << ", " << hidden << ", " << bits << " bits, batch " << batch;
        }
      }
      EXPECT_EQ(on_gpu.bytes_copied(), there.size() * there.bytes());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, BitBatchesOf, ::testing::Values(1, 4, 20));

TEST(BitBatches, HoldFewerBytesWithFewerBits) {
  std::int64_t before = 0;
  for (const int bits : {1, 2, 4, 8}) {
    const Scene scene(nn::ModelKind::gcn, 6, bits);
    const BitBatches batches(scene.graph, scene.partition, 4, scene.features, scene.steps);
    EXPECT_GT(batches.bytes(), before);
    before = batches.bytes();
  }
}

TEST(BitBatches, HoldEveryVertexOnceAndPartsApart) {
  const Scene scene(nn::ModelKind::gcn, 6, 4);
  const BitBatches batches(scene.graph, scene.partition, 4, scene.features, scene.steps);
  std::vector<int> seen(700, 0);
  for (std::int64_t batch = 0; batch < batches.size(); ++batch) {
    const auto members = batches.members(batch);
    EXPECT_EQ(std::ssize(members), batches.vertices());
    for (std::size_t row = 0; row < members.size(); ++row) {
      if (members[row] < 0) continue;
      ++seen[static_cast<std::size_t>(members[row])];
      const bool begins =
          row == 0 || members[row - 1] < 0 ||
          scene.partition.assignment[static_cast<std::size_t>(members[row])] !=
              scene.partition.assignment[static_cast<std::size_t>(members[row - 1])];
      if (begins) {
        EXPECT_EQ(row % 128, 0u);
      }
    }
  }
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
}

TEST(BitBatches, OfOnePartAreTheWholeGraph) {
  const Scene scene(nn::ModelKind::gcn, 16, 4, 300, 1);
  const BitBatches batches(scene.graph, scene.partition, 20, scene.features, scene.steps);
  EXPECT_EQ(batches.size(), 1);
  BitBatchRunner runner(scene.steps, batches);
  runner.run();
  const Matrix<float> computed = gathered(batches, runner, 300, 7);
  const Matrix<float> whole = over_edges(scene);
  EXPECT_TRUE(std::equal(whole.span().begin(), whole.span().end(), computed.data()));
}

/// Parts without vertices, alone in a batch and beside others.
TEST(BitBatches, MayBeEmpty) {
  Scene scene(nn::ModelKind::gcn, 16, 4, 300, 2);
  const Matrix<float> whole = over_edges(scene);
  for (auto& part : scene.partition.assignment) part *= 3;
  scene.partition.parts = 6;  // of which 0 and 3 have vertices
  for (const std::int64_t parts_per_batch : {1, 2}) {
    const BitBatches batches(scene.graph, scene.partition, parts_per_batch, scene.features,
                             scene.steps);
    EXPECT_EQ(batches.size(), 6 / parts_per_batch);
    BitBatchRunner runner(scene.steps, batches);
    runner.run();
    const Matrix<float> computed = gathered(batches, runner, 300, 7);
    EXPECT_TRUE(std::equal(whole.span().begin(), whole.span().end(), computed.data()));
  }
  const Graph none(0, 0, SharedArray<EdgeOffset>(std::vector<EdgeOffset>{0}), {});
  const BitBatches nothing(none, Partition{.parts = 1, .assignment = {}, .method = {}}, 4,
                           Matrix<float>(0, 20), scene.steps);
  BitBatchRunner runner(scene.steps, nothing);
  runner.run();
  for (std::int64_t batch = 0; batch < nothing.size(); ++batch) {
    EXPECT_EQ(runner.values(batch).size(), 0);
  }
}

TEST(BitBatches, SayWhatIsWrong) {
  const Scene scene(nn::ModelKind::gcn, 6, 4);
  const auto invalid = ErrorCode::invalid_argument;
  expect_error(invalid, {"0 parts per batch"},
               [&] { BitBatches(scene.graph, scene.partition, 0, scene.features, scene.steps); });
  const Matrix<float> narrow(700, 3, 0.0f);
  expect_error(invalid, {"features are 700 x 3, expected 700 x 20"},
               [&] { BitBatches(scene.graph, scene.partition, 2, narrow, scene.steps); });
  Partition outside = scene.partition;
  outside.assignment[5] = 9;
  expect_error(ErrorCode::bad_data, {"vertex 5 is in part 9", "number parts from 0"},
               [&] { BitBatches(scene.graph, outside, 2, scene.features, scene.steps); });
  const std::vector<float> weights(static_cast<std::size_t>(scene.graph.num_edges()), 2.0f);
  expect_error(ErrorCode::unsupported, {"weights of their own"}, [&] {
    BitBatches(scene.graph.with_values(SharedArray<float>(weights)), scene.partition, 2,
               scene.features, scene.steps);
  });
}

}  // namespace
}  // namespace tessera::train
