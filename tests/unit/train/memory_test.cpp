// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <gtest/gtest.h>

#include "support/running_dry.hpp"
#include "support/training_data.hpp"
#include "tessera/train/trainer.hpp"

/// Training takes the memory of its tensors from the resource that it was given, on any device.
namespace tessera::train {
namespace {

using test::CountingMemory;

struct Training {
  Training(nn::ModelKind kind, MemoryResource& memory)
      : data(test::learnable_vertices()), config(test::small_model(kind)) {
    options = test::short_training(3);
    options.placement.memory = &memory;
    options.record_steps = false;
    problem = prepare(data, config, options);
  }

  std::unique_ptr<Trainer> trainer() const {
    return std::make_unique<Trainer>(problem, problem.split, config, options, 1);
  }

  Dataset data;
  nn::ModelConfig config;
  TrainOptions options;
  Problem problem;
};

class MemoryOfTraining : public ::testing::TestWithParam<nn::ModelKind> {};

TEST_P(MemoryOfTraining, ComesFromTheResourceAndGoesBackThere) {
  CountingMemory memory{Device{}};
  const Training training(GetParam(), memory);
  {
    const auto trainer = training.trainer();
    trainer->train_epoch();
    trainer->evaluate();
    EXPECT_GT(memory.num_live(), 0);
    const std::int64_t made = memory.num_allocations();
    trainer->train_epoch();
    trainer->evaluate();
    EXPECT_EQ(memory.num_allocations(), made) << "a later epoch allocates";
  }
  EXPECT_EQ(memory.num_live(), 0);
  EXPECT_EQ(memory.num_wrong_releases(), 0);
}

TEST_P(MemoryOfTraining, EndsWithOneErrorWhenItRunsDry) {
  CountingMemory memory{Device{}};
  test::expect_one_error_when_dry(memory, [&] {
    const Training training(GetParam(), memory);
    training.trainer()->train_epoch();
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, MemoryOfTraining,
                         ::testing::Values(nn::ModelKind::gcn, nn::ModelKind::gat,
                                           nn::ModelKind::gin));

}  // namespace
}  // namespace tessera::train
