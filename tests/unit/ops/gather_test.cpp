// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/gather.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/random_matrix.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/step/tensor.hpp"

namespace tessera::ops {
namespace {

std::vector<VertexId> some_rows(std::int64_t rows, std::int64_t count) {
  std::vector<VertexId> chosen;
  for (std::int64_t i = 0; i < count; ++i) chosen.push_back(static_cast<VertexId>(i * 7 % rows));
  return chosen;
}

void expect_gathered(Device device, Precision precision) {
  for (const std::int64_t cols : {1, 3, 8, 16, 33}) {
    for (const std::int64_t count : {0, 1, 40}) {
      const Matrix<float> all = testing::integers<float>(17, cols, 4);
      const std::vector<VertexId> chosen = some_rows(17, count);
      step::Placement placement{precision, &default_memory(device)};
      step::Tensor x(placement), y(count, cols, placement);
      x.upload(all);
      Buffer<VertexId> rows(count, placement.place());
      copy_bytes(rows.data(), chosen.data(), chosen.size() * sizeof(VertexId), device);
      gather_rows(x, MatrixView<const VertexId>(rows.data(), count, 1, device), y, device);
      Matrix<float> back(17, cols), taken(count, cols);
      download(x, back, device);
      download(y, taken, device);
      for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < cols; ++j) {
          ASSERT_EQ(taken(i, j), back(chosen[static_cast<std::size_t>(i)], j))
              << i << " " << j << " of " << cols << " " << to_string(precision);
        }
      }
    }
  }
}

TEST(GatherRows, TakesRowsBitForBit) {
  for (const Precision precision : {Precision::fp64, Precision::fp32, Precision::bf16}) {
    expect_gathered({}, precision);
  }
}

TEST(GatherRows, TakesRowsOnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    expect_gathered({DeviceKind::cuda, 0}, precision);
  }
}

TEST(GatherRows, RefusesRowsThatAreNotThere) {
  const Matrix<float> x(3, 2, 1.0f);
  Matrix<float> y(2, 2);
  const std::vector<VertexId> rows = {0, 3};
  testing::expect_error(ErrorCode::invalid_argument, {"rows[1] is 3", "3 rows"},
                        [&] { gather_rows(x, MatrixView<const VertexId>(rows.data(), 2, 1), y); });
  Matrix<float> narrow(2, 1);
  testing::expect_error(ErrorCode::invalid_argument, {"y"}, [&] {
    gather_rows(x, MatrixView<const VertexId>(rows.data(), 2, 1), narrow);
  });
}

}  // namespace
}  // namespace tessera::ops
