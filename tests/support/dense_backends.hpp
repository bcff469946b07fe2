// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/error_measure.hpp"
#include "support/placed.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/ops/operand.hpp"

/// Where and in which precision a test of a dense op runs.
namespace tessera::test {

struct DenseBackend {
  Device device;
  Precision precision = Precision::fp32;
};

/// All that this machine has.
inline std::vector<DenseBackend> dense_backends() {
  std::vector<DenseBackend> backends = {
      {{}, Precision::fp32}, {{}, Precision::fp64}, {{}, Precision::bf16}};
  const Device gpu{DeviceKind::cuda, 0};
  if (num_gpus() > 0) {
    for (const Precision p : {Precision::fp32, Precision::bf16, Precision::fp16}) {
      backends.push_back({gpu, p});
    }
  }
  return backends;
}

/// Those without 16-bit storage.
inline std::vector<DenseBackend> wide_dense_backends() {
  std::vector<DenseBackend> wide;
  for (const DenseBackend& backend : dense_backends()) {
    if (bytes_per_element(backend.precision) > 2) wide.push_back(backend);
  }
  return wide;
}

inline std::string backend_name(const ::testing::TestParamInfo<DenseBackend>& info) {
  const bool on_cpu = info.param.device.kind == DeviceKind::cpu;
  return std::string(on_cpu ? "on_cpu_" : "on_cuda_") + to_string(info.param.precision);
}

/// Calls `body.template operator()<T>()` with the type that stores a precision.
template <class Body>
void with_type_of(Precision precision, Body&& body) {
  switch (precision) {
    case Precision::fp64: return body.template operator()<double>();
    case Precision::bf16: return body.template operator()<Bfloat16>();
    case Precision::fp16: return body.template operator()<Float16>();
    default: return body.template operator()<float>();
  }
}

/// A matrix on a device, inside a wider one that must stay as it is.
template <class T>
class DeviceMatrix {
 public:
  DeviceMatrix(const Matrix<T>& values, Device device, std::int64_t margin = 3)
      : host_(values, margin), placed_(host_, device) {}
  DeviceMatrix(std::int64_t rows, std::int64_t cols, Device device, std::int64_t margin = 3)
      : host_(rows, cols, margin), placed_(host_, device) {}

  /// With a margin behind each row alone, which fills it up to a multiple of `multiple` numbers.
  static DeviceMatrix filled(const Matrix<T>& values, Device device, std::int64_t multiple) {
    return DeviceMatrix(Padded<T>::filled(values, multiple), device);
  }

  MatrixView<T> view() { return placed_.view(); }
  operator ops::Operand() { return view(); }
  operator ops::ConstOperand() { return view(); }

  /// What it holds now.
  Matrix<T> values() {
    placed_.fetch();
    EXPECT_TRUE(host_.margins_intact());
    const MatrixView<T> view = host_.view();
    Matrix<T> result(view.rows, view.cols);
    for (std::int64_t i = 0; i < view.rows; ++i) {
      for (std::int64_t j = 0; j < view.cols; ++j) result(i, j) = view(i, j);
    }
    return result;
  }

  /// Overwrites it.
  void set(const Matrix<T>& values) {
    for (std::int64_t i = 0; i < values.rows(); ++i) {
      for (std::int64_t j = 0; j < values.cols(); ++j) host_.view()(i, j) = values(i, j);
    }
    placed_.send();
  }

 private:
  DeviceMatrix(Padded<T> host, Device device) : host_(std::move(host)), placed_(host_, device) {}

  Padded<T> host_;
  Placed<T> placed_;
};

/// Compares with the reference: `scale` is the size of the numbers that were added up, beside the
/// result itself.
template <class T>
void expect_close(const char* what, const Matrix<T>& got, const Matrix<double>& expected,
                  double tolerance_of_wide, double scale = 1) {
  testing::Tolerance tolerance = testing::tolerance_of(ops::PrecisionOf<T>::value);
  tolerance.of_magnitude = std::is_same_v<T, double> ? 1e-13 : tolerance_of_wide;
  if (std::is_same_v<T, Float16>) tolerance.of_result = 0x1p-11;
  Matrix<double> magnitude(expected.rows(), expected.cols());
  for (std::int64_t i = 0; i < magnitude.size(); ++i) {
    magnitude.data()[i] = scale + std::abs(expected.data()[i]);
  }
  EXPECT_EQ(testing::first_mismatch(got.view(), expected, magnitude, tolerance), "") << what;
}

}  // namespace tessera::test
