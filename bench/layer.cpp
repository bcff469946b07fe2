// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "tessera/ops/activation.hpp"
#include "tessera/ops/batch_norm.hpp"
#include "tessera/ops/loss.hpp"

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/placed.hpp"
#include "bench/prepare.hpp"
#include "bench/sample.hpp"
#include "ops/activation/reference.hpp"
#include "ops/batch_norm/reference.hpp"
#include "ops/loss/reference.hpp"

namespace tessera::bench {
namespace {

/// The first rows of a matrix: what the checks of ops that treat rows alike look at.
template <class T>
Matrix<double> head_of(const Matrix<T>& matrix, std::int64_t wanted = 4096) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(std::min(matrix.rows(), wanted)));
  std::iota(rows.begin(), rows.end(), 0);
  return gather(matrix.view(), rows);
}

/// "batch_norm/cpu/rows".
std::string kernel_on(Device device, const char* op) {
  return std::string(op) + (device.kind == DeviceKind::cpu ? "/cpu/rows" : "/cuda/rows");
}

template <class T>
Matrix<double> columns_of(const Matrix<T>& matrix, const std::vector<std::int64_t>& cols) {
  Matrix<double> result(matrix.rows(), static_cast<std::int64_t>(cols.size()));
  for (std::int64_t i = 0; i < result.rows(); ++i) {
    for (std::int64_t j = 0; j < result.cols(); ++j) {
      result(i, j) = static_cast<double>(matrix(i, cols[static_cast<std::size_t>(j)]));
    }
  }
  return result;
}

/// relu(X + b) with half of it dropped.
template <class T>
class BiasActivationDropout : public Trial {
 public:
  explicit BiasActivationDropout(const Problem& problem)
      : precision_(problem.precision),
        device_(problem.device),
        x_(random_placed<T>(problem.graph.num_rows(), problem.features, problem.seed, device_)),
        bias_(random_placed<T>(1, problem.features, problem.seed + 1, device_)),
        y_(x_.rows(), problem.features, device_) {
    options_.activation = ops::Activation::relu;
    options_.dropout = 0.5;
    options_.random = Random(problem.seed);
  }

  Gate check() override {
    run({});
    const Matrix<double> x = head_of(x_.host()), bias = head_of(bias_.host());
    const Matrix<double> computed = head_of(y_.fetch());
    Matrix<double> expected(x.rows(), x.cols()), magnitude(x.rows(), x.cols());
    ops::reference::bias_activation_dropout(x, bias, options_, expected);
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      for (std::int64_t j = 0; j < x.cols(); ++j) {
        magnitude(i, j) = std::abs(x(i, j)) + std::abs(bias(0, j));
      }
    }
    const ErrorMeasure measure({.stored = precision_});
    return {measure.largest_error(computed.view(), expected, magnitude), measure.bound(), x.rows(),
            x_.rows()};
  }
  void run(Stream stream) override {
    ops::bias_activation_dropout(x_, bias_, options_, y_, device_, stream);
  }
  std::int64_t bytes() const override { return x_.bytes() + y_.bytes(); }
  std::string kernel() const override { return kernel_on(device_, "bias_activation_dropout"); }

 private:
  Precision precision_;
  ops::ActivationOptions options_;
  Device device_;
  Placed<T> x_, bias_, y_;
};

/// The training form.
template <class T>
class BatchNorm : public Trial {
 public:
  explicit BatchNorm(const Problem& problem)
      : precision_(problem.precision),
        device_(problem.device),
        x_(random_placed<T>(problem.graph.num_rows(), problem.features, problem.seed, device_)),
        gamma_(random_placed<T>(1, problem.features, problem.seed + 1, device_)),
        beta_(random_placed<T>(1, problem.features, problem.seed + 2, device_)),
        y_(x_.rows(), problem.features, device_) {}

  Gate check() override {
    run({});
    const auto cols = spread_rows(x_.cols(), 8);
    const Matrix<double> x = columns_of(x_.host(), cols);
    const Matrix<double> computed = columns_of(y_.fetch(), cols);
    const Matrix<double> gamma = columns_of(gamma_.host(), cols);
    const Matrix<double> beta = columns_of(beta_.host(), cols);
    Matrix<double> expected(x.rows(), x.cols()), magnitude(x.rows(), x.cols());
    Matrix<double> mean(1, x.cols(), 0.0), variance(1, x.cols(), 1.0);
    Matrix<double> saved_mean(1, x.cols()), inverse_deviation(1, x.cols());
    ops::reference::batch_norm(x, gamma, beta, {}, mean, variance, expected, saved_mean,
                               inverse_deviation);
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      for (std::int64_t j = 0; j < x.cols(); ++j) {
        const double spread = std::abs(x(i, j)) + std::abs(saved_mean(0, j));
        magnitude(i, j) =
            std::abs(gamma(0, j)) * spread * inverse_deviation(0, j) + std::abs(beta(0, j));
      }
    }
    const ErrorMeasure measure({.stored = precision_, .terms = x.rows()});
    return {measure.largest_error(computed.view(), expected, magnitude), measure.bound(), x.rows(),
            x_.rows()};
  }
  void run(Stream stream) override {
    ops::batch_norm(x_, gamma_, beta_, {}, {}, y_, {}, {}, device_, stream, &workspace_);
  }
  std::int64_t bytes() const override { return 2 * x_.bytes() + y_.bytes(); }
  std::string kernel() const override { return kernel_on(device_, "batch_norm"); }

 private:
  Precision precision_;
  Device device_;
  Placed<T> x_, gamma_, beta_, y_;
  ops::DenseWorkspace workspace_{device_};
};

/// Loss and gradient over all rows.
template <class T>
class CrossEntropy : public Trial {
 public:
  explicit CrossEntropy(const Problem& problem)
      : precision_(problem.precision),
        device_(problem.device),
        logits_(
            random_placed<T>(problem.graph.num_rows(), problem.features, problem.seed, device_)),
        gradient_(logits_.rows(), problem.features, device_),
        loss_(1, default_memory(device_)) {
    const Random random(problem.seed + 1);
    for (std::int64_t i = 0; i < logits_.rows() && problem.features > 0; ++i) {
      rows_.push_back(i);
      labels_.push_back(static_cast<std::int64_t>(random.below(
          static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(problem.features))));
    }
    labels_.resize(static_cast<std::size_t>(logits_.rows()), -1);
    targets_ = ops::LossTargets::classes(labels_, rows_, problem.features, device_);
  }

  Gate check() override {
    run({});
    // The gradient of a row depends on that row and on how many there are.
    const Matrix<double> logits = head_of(logits_.host());
    Matrix<double> computed = head_of(gradient_.fetch());
    const auto checked = static_cast<std::size_t>(
        std::min<std::int64_t>(logits.rows(), static_cast<std::int64_t>(rows_.size())));
    const std::vector<std::int64_t> rows(rows_.begin(),
                                         rows_.begin() + static_cast<std::ptrdiff_t>(checked));
    Matrix<double> expected(logits.rows(), logits.cols(), 0.0);
    ops::reference::cross_entropy(logits, labels_, rows, expected);
    const double share =
        static_cast<double>(rows_.size()) / std::max(1.0, static_cast<double>(checked));
    for (double& value : computed.span()) value *= share;
    const Matrix<double> magnitude(logits.rows(), logits.cols(),
                                   1 / std::max(1.0, static_cast<double>(checked)));
    const ErrorMeasure measure({.stored = precision_, .terms = logits.cols()});
    return {measure.largest_error(computed.view(), expected, magnitude), measure.bound(),
            logits.rows(), logits_.rows()};
  }
  void run(Stream stream) override {
    ops::loss(logits_, *targets_, gradient_, loss_.data(), stream, &workspace_);
  }
  std::int64_t bytes() const override { return logits_.bytes() + gradient_.bytes(); }
  std::string kernel() const override { return kernel_on(device_, "cross_entropy"); }

 private:
  Precision precision_;
  Device device_;
  Placed<T> logits_, gradient_;
  std::vector<std::int64_t> labels_, rows_;
  std::optional<ops::LossTargets> targets_;
  Buffer<double> loss_;
  ops::DenseWorkspace workspace_{device_};
};

}  // namespace

std::vector<Suite> layer_suites() {
  const std::vector<Precision> precisions = {Precision::fp32, Precision::fp64};
  return {
      {"bias_activation_dropout",
       "relu(X + b) with half of it dropped",
       {},
       precisions,
       0,
       prepare_floating<BiasActivationDropout>},
      {"batch_norm",
       "batch normalisation in training",
       {},
       precisions,
       0,
       prepare_floating<BatchNorm>},
      {"cross_entropy",
       "loss and gradient over all rows",
       {},
       precisions,
       0,
       prepare_floating<CrossEntropy>},
  };
}

}  // namespace tessera::bench
