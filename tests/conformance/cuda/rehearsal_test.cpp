// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/counting_memory.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/nn/model.hpp"

#include "train/rehearsal.hpp"

namespace tessera::train {
namespace {

using test::CountingMemory;

constexpr Device gpu{DeviceKind::cuda, 0};

class GpuRehearsal : public ::testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }
  /// How often memory is asked for while products of a model's shapes run, and the model is made.
  static std::int64_t num_allocations(std::int64_t rows) {
    CountingMemory memory(gpu);
    step::Placement placement{GetParam(), &memory};
    nn::ModelConfig config = nn::paper_defaults(nn::ModelKind::gcn);
    config.hidden = 128;
    nn::Model model(config, 602, 41, 1, placement);
    const std::int64_t before = memory.live_bytes();
    Rehearsal rehearsal(model, placement, rows);
    rehearsal.wait();
    rehearsal.wait();
    synchronise(gpu);
    EXPECT_EQ(memory.live_bytes(), before);
    return memory.num_allocations();
  }
};

TEST_P(GpuRehearsal, gives_all_memory_back_and_leaves_small_graphs_alone) {
  EXPECT_GT(num_allocations(1 << 16), num_allocations(1000));
}

INSTANTIATE_TEST_SUITE_P(Precisions, GpuRehearsal,
                         ::testing::Values(Precision::fp32, Precision::tf32, Precision::bf16));

}  // namespace
}  // namespace tessera::train
