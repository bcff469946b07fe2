// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/gemm.hpp"

#include <algorithm>
#include <vector>

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/placed.hpp"
#include "bench/prepare.hpp"
#include "bench/sample.hpp"
#include "core/exact_sum.hpp"
#include "ops/gemm/reference.hpp"

namespace tessera::bench {
namespace {

using ops::Transpose;

std::int64_t count_of(const std::vector<std::int64_t>& rows) {
  return static_cast<std::int64_t>(rows.size());
}

std::string kernel_on(Device device) {
  return device.kind == DeviceKind::cpu ? "gemm/cpu/openblas" : "gemm/cuda/cublas";
}

/// Y = X W with as many rows as the graph has vertices: what follows an aggregation.
template <class T>
class Update : public Trial {
 public:
  explicit Update(const Problem& problem)
      : precision_(problem.precision),
        device_(problem.device),
        x_(random_placed<T>(problem.graph.num_rows(), problem.features, problem.seed, device_)),
        weight_(random_placed<T>(problem.features, problem.features, problem.seed + 1, device_)),
        y_(x_.rows(), problem.features, device_) {}

  Gate check() override {
    run({});
    const auto rows = spread_rows(x_.rows(), 1024);
    const Matrix<double> x = gather(x_.host().view(), rows);
    const Matrix<double> weight = to_double(weight_.host());
    Matrix<double> expected(count_of(rows), y_.cols()), magnitude(count_of(rows), y_.cols());
    ops::reference::gemm(Transpose::no, Transpose::no, 1, x, weight, 0, expected);
    ops::reference::gemm(Transpose::no, Transpose::no, 1, absolute(gather(x_.host().view(), rows)),
                         absolute(to_double(weight_.host())), 0, magnitude);
    const Matrix<double> computed = gather(y_.fetch().view(), rows);
    const ErrorMeasure measure({.stored = precision_, .terms = x_.cols()});
    return {measure.largest_error(computed.view(), expected, magnitude), measure.bound(),
            count_of(rows), x_.rows()};
  }
  void run(Stream stream) override {
    ops::gemm(Transpose::no, Transpose::no, 1, x_, weight_, 0, y_, device_, stream, &workspace_);
  }
  std::int64_t bytes() const override { return x_.bytes() + weight_.bytes() + y_.bytes(); }
  std::string kernel() const override { return kernel_on(device_); }

 private:
  static Matrix<double> to_double(const Matrix<T>& matrix) {
    return gather(matrix.view(), spread_rows(matrix.rows(), matrix.rows()));
  }

  Precision precision_;
  Device device_;
  Placed<T> x_, weight_, y_;
  ops::DenseWorkspace workspace_{device_};
};

/// dW = X^T dY: a small result that sums over all vertices.
template <class T>
class WeightGradient : public Trial {
 public:
  explicit WeightGradient(const Problem& problem)
      : precision_(problem.precision),
        device_(problem.device),
        x_(random_placed<T>(problem.graph.num_rows(), problem.features, problem.seed, device_)),
        grad_y_(random_placed<T>(problem.graph.num_rows(), problem.features, problem.seed + 1,
                                 device_)),
        grad_weight_(problem.features, problem.features, device_) {}

  Gate check() override {
    run({});
    // A few columns of X, over all vertices.
    const auto cols = spread_rows(x_.cols(), 8);
    std::vector<ExactSum> sums(static_cast<std::size_t>(count_of(cols) * grad_y_.cols()));
    Matrix<double> magnitude(count_of(cols), grad_y_.cols(), 0.0);
    for (std::int64_t vertex = 0; vertex < x_.rows(); ++vertex) {
      for (std::int64_t i = 0; i < count_of(cols); ++i) {
        const auto value =
            static_cast<double>(x_.host()(vertex, cols[static_cast<std::size_t>(i)]));
        for (std::int64_t j = 0; j < grad_y_.cols(); ++j) {
          const double product = value * static_cast<double>(grad_y_.host()(vertex, j));
          sums[static_cast<std::size_t>(i * grad_y_.cols() + j)] += product;
          magnitude(i, j) += product < 0 ? -product : product;
        }
      }
    }
    Matrix<double> expected(magnitude.rows(), magnitude.cols());
    std::transform(sums.begin(), sums.end(), expected.data(),
                   [](const ExactSum& sum) { return sum.value(); });
    const Matrix<double> computed = gather(grad_weight_.fetch().view(), cols);
    const ErrorMeasure measure({.stored = precision_, .terms = x_.rows()});
    return {measure.largest_error(computed.view(), expected, magnitude), measure.bound(),
            count_of(cols), x_.cols()};
  }
  void run(Stream stream) override {
    ops::gemm(Transpose::yes, Transpose::no, 1, x_, grad_y_, 0, grad_weight_, device_, stream,
              &workspace_);
  }
  std::int64_t bytes() const override {
    return x_.bytes() + grad_y_.bytes() + grad_weight_.bytes();
  }
  std::string kernel() const override { return kernel_on(device_); }

 private:
  Precision precision_;
  Device device_;
  Placed<T> x_, grad_y_, grad_weight_;
  ops::DenseWorkspace workspace_{device_};
};

}  // namespace

std::vector<Suite> gemm_suites() {
  const std::vector<Precision> precisions = {Precision::fp32, Precision::fp64};
  return {
      {"gemm", "X W, with a row of X for each vertex", {}, precisions, 0, prepare_floating<Update>},
      {"gemm_weight_gradient",
       "X^T dY, a sum over all vertices",
       {},
       precisions,
       0,
       prepare_floating<WeightGradient>},
  };
}

}  // namespace tessera::bench
