// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "graph/device_build.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/matrix.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/ops/kernels.hpp"
#include "tessera/ops/spmm.hpp"

/// More than 2^31 edges, and more than 2^31 elements, on a GPU. They need tens of gigabytes there
/// and run where TESSERA_BIG_TESTS is set (`tools/gpu.sh big`).
namespace tessera::ops {
namespace {

/// Row i of the circulant graph has sources whose numbers modulo `period` are i, i + 1, …: the
/// stride is one more than a multiple of it, and so are the vertices a multiple.
constexpr std::int64_t period = 4096;
constexpr VertexId stride = 8 * period + 1;

class BigOnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("TESSERA_BIG_TESTS") == nullptr)
      GTEST_SKIP() << "TESSERA_BIG_TESTS is not set; tools/gpu.sh big runs it";
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }

  static constexpr Device device{DeviceKind::cuda, 0};
};

/// The sum of (i + k) mod period for k in [0, degree), degree <= period.
std::int64_t sum_of_residues(std::int64_t i, std::int64_t degree) {
  const std::int64_t first = i % period;
  const std::int64_t wrapped = std::max<std::int64_t>(0, first + degree - period);
  return degree * first + degree * (degree - 1) / 2 - wrapped * period;
}

/// X[j][f] = (j mod period) + f, stored where the kernels run. All sums are integers below 2^24.
Matrix<float> placed_features(std::int64_t vertices, std::int64_t width, Device device) {
  Matrix<float> x(vertices, width);
  parallel_for(vertices, 4096, [&](std::int64_t j) {
    for (std::int64_t f = 0; f < width; ++f) x(j, f) = static_cast<float>(j % period + f);
  });
  Matrix<float> there(vertices, width, default_memory(device));
  copy_bytes(there.data(), x.data(), static_cast<std::size_t>(x.size()) * sizeof(float), device);
  synchronise(device);
  return there;
}

/// How many elements of Y are not what they must be.
std::int64_t count_wrong(const Matrix<float>& y_there, std::int64_t degree, Device device) {
  Matrix<float> y(y_there.rows(), y_there.cols());
  copy_bytes(y.data(), y_there.data(), static_cast<std::size_t>(y.size()) * sizeof(float), device);
  synchronise(device);
  const auto wrong_in = [&](std::int64_t begin, std::int64_t end) {
    std::int64_t wrong = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t sum = sum_of_residues(i, degree);
      for (std::int64_t f = 0; f < y.cols(); ++f) {
        wrong += y(i, f) == static_cast<float>(sum + degree * f) ? 0 : 1;
      }
    }
    return wrong;
  };
  return parallel_reduce(y.rows(), 4096, std::int64_t{0}, wrong_in,
                         [](std::int64_t a, std::int64_t b) { return a + b; });
}

/// Runs every kernel that takes the problem, at most `most` of them; the plan's choice first.
void expect_right(const Graph& graph, std::int64_t degree, std::int64_t width, int most) {
  const Device device = graph.device();
  const Matrix<float> x = placed_features(graph.num_cols(), width, device);
  Matrix<float> y(graph.num_rows(), width, default_memory(device));
  std::vector<std::string> names = {""};
  for (const KernelInfo& info : kernels("spmm")) {
    const bool of_rows = info.name.find("/cuda/rows") != std::string::npos;
    if (of_rows) names.push_back(info.name);
  }
  int run_so_far = 0;
  for (const std::string& name : names) {
    SpmmOptions options;
    options.device = device;
    options.features = width;
    options.kernel = name;
    try {
      const SpmmPlan plan = plan_spmm(graph, options);
      SCOPED_TRACE(plan.kernel().name);
      fill_zero(y.data(), static_cast<std::size_t>(y.size()) * sizeof(float), device);
      run(plan, {x}, {y});
      EXPECT_EQ(count_wrong(y, degree, device), 0);
      std::printf("%s: right\n", plan.kernel().name.c_str());
      if (++run_so_far >= most) break;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::unsupported) << error.what();
    }
  }
  EXPECT_GT(run_so_far, 0);
}

TEST_F(BigOnDevice, MoreThan31BitsOfEdges) {
  constexpr VertexId vertices = 2150 * static_cast<VertexId>(period);
  constexpr VertexId degree = 250;
  const Graph graph = detail::circulant_on_device(vertices, degree, stride, device);
  EXPECT_EQ(graph.num_edges(), std::int64_t{vertices} * degree);
  EXPECT_GT(graph.num_edges(), std::int64_t{2200000000});
  expect_right(graph, degree, 16, 100);
}

TEST_F(BigOnDevice, MoreThan31BitsOfElements) {
  constexpr VertexId vertices = 2198 * static_cast<VertexId>(period);
  constexpr VertexId degree = 4;
  const Graph graph = detail::circulant_on_device(vertices, degree, stride, device);
  EXPECT_GT(std::int64_t{vertices} * 256, std::int64_t{1} << 31);
  expect_right(graph, degree, 256, 3);
}

}  // namespace
}  // namespace tessera::ops
