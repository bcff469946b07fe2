// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/recording.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "support/dense_backends.hpp"
#include "support/dense_workspace.hpp"
#include "support/expect_error.hpp"
#include "support/matrices.hpp"
#include "support/replay_scene.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/batch_norm.hpp"
#include "tessera/ops/dropout.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/evaluation.hpp"
#include "tessera/ops/gemm.hpp"
#include "tessera/ops/heads.hpp"
#include "tessera/ops/loss.hpp"
#include "tessera/ops/optimiser.hpp"

/// Every dense op recorded once and replayed on other numbers.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::normal_matrix;
using Scene = test::ReplayScene;

constexpr Device gpu = test::replay_gpu;

class GpuReplay : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
    test::workspace_on(gpu);  // made before anything is recorded
  }
};

TEST_F(GpuReplay, gemm) {
  for (const std::int64_t inner : {0, 33, 5000}) {
    Scene scene;
    auto &a = scene.matrix(inner, 17), &b = scene.matrix(inner, 65), &c = scene.matrix(17, 65, 3);
    scene.expect_replays("gemm", [&](Stream stream) {
      gemm(Transpose::yes, Transpose::no, 1, a, b, 0.5, c, gpu, stream, test::workspace_on(gpu));
    });
  }
}

TEST_F(GpuReplay, elementwise) {
  Scene scene;
  auto &x = scene.matrix(300, 33), &y = scene.matrix(300, 33, 3), &turned = scene.matrix(33, 300);
  auto &factor = scene.matrix(1, 1), &sum = scene.matrix(1, 1), &copied = scene.matrix(300, 33);
  auto& filled = scene.matrix(5, 7);
  scene.expect_replays("elementwise", [&](Stream stream) {
    add_scaled(2, x, 0.5, y, gpu, stream);
    add_scaled_by(factor, 1, x, 0.5, y, gpu, stream);
    transpose(y, turned, gpu, stream);
    dot(x, y, sum, gpu, stream, test::workspace_on(gpu));
    copy(y, copied, gpu, stream);
    fill(filled, 3, gpu, stream);
  });
}

TEST_F(GpuReplay, activation) {
  ActivationOptions options;
  options.activation = Activation::elu;
  options.dropout = 0.5;
  Scene scene;
  auto &x = scene.matrix(3000, 16), &bias = scene.matrix(1, 16), &y = scene.matrix(3000, 16);
  auto &grad = scene.matrix(3000, 16), &grad_bias = scene.matrix(1, 16);
  auto &unit = scene.matrix(3000, 16), &grad_unit = scene.matrix(3000, 16);
  scene.expect_replays("activation", [&](Stream stream) {
    bias_activation_dropout(x, bias, options, y, gpu, stream);
    bias_activation_dropout_backward(x, bias, options, grad, grad, grad_bias, gpu, stream,
                                     test::workspace_on(gpu));
    row_normalise(x, unit, 1e-12, gpu, stream);
    row_normalise_backward(x, y, grad_unit, 1e-12, gpu, stream);
  });
}

TEST_F(GpuReplay, batch_norm) {
  Scene scene;
  auto &x = scene.matrix(3000, 33), &y = scene.matrix(3000, 33), &grad = scene.matrix(3000, 33);
  std::vector<DeviceMatrix<float>*> rows;
  for (int i = 0; i < 8; ++i) rows.push_back(&scene.matrix(1, 33));
  scene.expect_replays("batch_norm", [&](Stream stream) {
    batch_norm(x, *rows[0], *rows[1], {}, {*rows[2], *rows[3]}, y, *rows[4], *rows[5], gpu, stream,
               test::workspace_on(gpu));
    batch_norm_backward(x, *rows[0], *rows[4], *rows[5], grad, grad, *rows[6], *rows[7], gpu,
                        stream, test::workspace_on(gpu));
  });
}

TEST_F(GpuReplay, heads) {
  Scene scene;
  auto &x = scene.matrix(900, 64), &vector = scene.matrix(1, 64), &y = scene.matrix(900, 8);
  auto &grad_x = scene.matrix(900, 64), &grad_vector = scene.matrix(1, 64);
  auto &other = scene.matrix(900, 8), &grad_other = scene.matrix(1, 64);
  auto &mean = scene.matrix(900, 8), &grad_mean = scene.matrix(900, 64);
  scene.expect_replays("heads", [&](Stream stream) {
    head_dot(x, vector, y, gpu, stream);
    head_dot_backward(x, vector, y, grad_x, grad_vector, gpu, stream, test::workspace_on(gpu));
    head_dots(x, vector, vector, y, other, gpu, stream);
    head_dots_backward(x, vector, vector, y, other, grad_x, grad_vector, grad_other, gpu, stream,
                       test::workspace_on(gpu));
    head_mean(x, mean, gpu, stream);
    head_mean_backward(mean, grad_mean, gpu, stream);
  });
}

TEST_F(GpuReplay, losses) {
  std::vector<std::int64_t> labels, rows;
  for (std::int64_t i = 0; i < 2000; ++i) {
    labels.push_back(i % 7);
    if (i % 3 != 0) rows.push_back(i);
  }
  const LossTargets classes = LossTargets::classes(labels, rows, 7, gpu);
  const LossTargets binary = LossTargets::binary(Matrix<float>(2000, 7, 1.0f).view(), rows, gpu);
  const LossTargets numbers =
      LossTargets::numbers(Matrix<float>(2000, 7, 0.5f).view(), rows, NumberLoss::huber, gpu);
  Buffer<double> values(3, default_memory(gpu));
  Scene scene;
  auto &logits = scene.matrix(2000, 7), &grad = scene.matrix(2000, 7);
  auto &other = scene.matrix(2000, 7), &third = scene.matrix(2000, 7);
  scene.expect_replays("losses", [&](Stream stream) {
    loss(logits, classes, grad, values.data(), stream, test::workspace_on(gpu));
    loss(logits, binary, other, values.data() + 1, stream, test::workspace_on(gpu));
    loss(logits, numbers, third, values.data() + 2, stream, test::workspace_on(gpu));
  });
}

TEST_F(GpuReplay, evaluations) {
  std::vector<std::int64_t> labels, train, validation, tested;
  for (std::int64_t i = 0; i < 2000; ++i) {
    labels.push_back(i % 7);
    (i % 3 == 0 ? train : i % 3 == 1 ? validation : tested).push_back(i);
  }
  const auto targets = EvaluationTargets::classes(labels, {train, validation, tested}, 7, gpu);
  DeviceMatrix<float> logits(normal_matrix<float>(2000, 7, 1), gpu);
  Buffer<EvaluationNumbers> numbers(1, default_memory(gpu));
  const auto work = [&](Stream stream) {
    evaluate(logits, targets, numbers.data(), stream, test::workspace_on(gpu));
  };
  const auto read = [&] {
    EvaluationNumbers found;
    copy_bytes(&found, numbers.data(), sizeof(found), gpu);
    synchronise(gpu);
    return found;
  };
  const Recording recording = Recording::of(gpu, work);
  EvaluationNumbers last;
  for (const std::uint64_t seed : {2u, 3u}) {
    logits.set(normal_matrix<float>(2000, 7, seed));
    recording.replay();
    const EvaluationNumbers replayed = read();
    work({});
    EXPECT_EQ(read(), replayed);
    EXPECT_FALSE(replayed == last);
    last = replayed;
  }
}

TEST_F(GpuReplay, steps_and_dropout_follow_the_clock) {
  const StepClock start{5, 0.5};
  Buffer<StepClock> clock(1, default_memory(gpu));
  Buffer<std::uint32_t> counter(1, default_memory(gpu));
  fill_zero(counter.data(), sizeof(std::uint32_t), gpu);
  DeviceMatrix<float> ones(Matrix<float>(40, 33, 1.0f), gpu), dropped(40, 33, gpu);
  DeviceMatrix<float> gradient(normal_matrix<float>(3, 5, 1), gpu);
  DeviceMatrix<float> parameter(normal_matrix<float>(3, 5, 2), gpu);
  DeviceMatrix<float> first(Matrix<float>(3, 5, 0.0f), gpu), second(Matrix<float>(3, 5, 0.0f), gpu);
  DeviceMatrix<float> expected(normal_matrix<float>(3, 5, 2), gpu);
  DeviceMatrix<float> m(Matrix<float>(3, 5, 0.0f), gpu), v(Matrix<float>(3, 5, 0.0f), gpu);
  ActivationOptions options;
  options.dropout = 0.5;
  options.random = Random(3, 1, 0);
  options.clock = clock.data();
  const OptimiserOptions adam;
  const std::vector<OptimiserTarget> targets = {{gradient, parameter, first, second}};
  const auto work = [&](Stream stream) {
    bias_activation_dropout(ones, {}, options, dropped, gpu, stream);
    step_and_advance(adam, clock.data(), counter.data(), targets, gpu, stream);
  };
  const auto begin = [&] {
    copy_bytes(clock.data(), &start, sizeof(start), gpu);
    parameter.set(normal_matrix<float>(3, 5, 2));
    first.set(Matrix<float>(3, 5, 0.0f));
    second.set(Matrix<float>(3, 5, 0.0f));
  };
  begin();
  work({});
  const Recording recording = Recording::of(gpu, work);
  begin();
  OptimiserOptions halved = adam;
  halved.learning_rate *= 0.5;
  for (std::uint32_t step = 5; step < 8; ++step) {
    SCOPED_TRACE(step);
    recording.replay();
    const Dropout drawn{0.5, Random(3, 1, step)};
    const Matrix<float> got = dropped.values();
    for (std::int64_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(static_cast<double>(got.data()[i]), drawn.factor(static_cast<std::uint64_t>(i)));
    }
    optimiser_step(halved, step + 1, gradient, expected, m, v, gpu);
    EXPECT_LE(test::largest_difference(parameter.values(), test::to_double(expected.values())),
              1e-6);
  }
}

TEST_F(GpuReplay, counts_what_was_queued) {
  DeviceMatrix<float> x(Matrix<float>(2, 2, 1.0f), gpu, 0);
  const Recording recording = Recording::of(gpu, [&](Stream stream) {
    for (int i = 0; i < 3; ++i) fill_zero(x.view().data, 16, gpu, stream);
  });
  EXPECT_EQ(recording.num_launches(), 3);
  EXPECT_EQ(Recording().num_launches(), 0);
}

TEST_F(GpuReplay, refuses_what_waits_or_reads_back) {
  DeviceMatrix<float> x(Matrix<float>(2, 2, 1.0f), gpu);
  Matrix<float> host(2, 2);
  testing::expect_error(ErrorCode::unsupported, {"recording"}, [&] {
    Recording::of(gpu, [&](Stream stream) { download(x, host, gpu, stream); });
  });
  testing::expect_error(ErrorCode::unsupported, {"waiting for the GPU"},
                        [&] { Recording::of(gpu, [&](Stream) { synchronise(gpu); }); });
  testing::expect_error(ErrorCode::unsupported, {"beside the recorded stream"}, [&] {
    Recording::of(gpu, [&](Stream) { copy_bytes(host.data(), x.view().data, 4, gpu); });
  });
  // And the GPU is as usable as before.
  fill(x, 4, gpu);
  EXPECT_EQ(x.values()(1, 1), 4.0f);
}

TEST(Recording, is_for_gpus_alone) {
  EXPECT_NE(why_not_recorded({}), "");
  testing::expect_error(ErrorCode::unsupported, {"no queue"},
                        [] { Recording::of({}, [](Stream) {}); });
  testing::expect_error(ErrorCode::invalid_argument, {"nothing was recorded"},
                        [] { Recording().replay(); });
}

}  // namespace
}  // namespace tessera::ops
