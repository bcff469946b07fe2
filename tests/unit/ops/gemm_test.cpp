// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/gemm.hpp"

#include <cmath>
#include <limits>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "ops/gemm/reference.hpp"
#include "support/errors.hpp"
#include "support/matrices.hpp"

namespace tessera::ops {
namespace {

using test::normal_matrix;
using test::to_double;

template <class T>
class Gemm : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(0); }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, Types);

template <class T>
constexpr double tolerance = std::is_same_v<T, float> ? 2e-6 : 1e-14;

/// The largest |got - expected| / (|alpha| |A| |B| + |beta C|).
template <class T>
double largest_error(MatrixView<const T> got, const Matrix<double>& expected,
                     const Matrix<double>& magnitude) {
  double worst = 0;
  for (std::int64_t i = 0; i < got.rows; ++i) {
    for (std::int64_t j = 0; j < got.cols; ++j) {
      const double error = std::abs(static_cast<double>(got(i, j)) - expected(i, j));
      if (error != 0) worst = std::max(worst, error / magnitude(i, j));
    }
  }
  return worst;
}

Matrix<double> absolute(Matrix<double> matrix) {
  for (double& value : matrix.span()) value = std::abs(value);
  return matrix;
}

struct Case {
  std::int64_t rows, cols, inner;
};

template <class T>
void compare_with_reference(const Case& shape, Transpose turn_a, Transpose turn_b, double alpha,
                            double beta) {
  SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.cols << " x " << shape.inner
                                  << " turned " << static_cast<int>(turn_a)
                                  << static_cast<int>(turn_b) << " beta " << beta);
  const bool ta = turn_a == Transpose::yes;
  const bool tb = turn_b == Transpose::yes;
  const auto a = normal_matrix<T>(ta ? shape.inner : shape.rows, ta ? shape.rows : shape.inner, 11);
  const auto b = normal_matrix<T>(tb ? shape.cols : shape.inner, tb ? shape.inner : shape.cols, 12);
  const auto start = normal_matrix<T>(shape.rows, shape.cols, 13);
  test::Padded<T> c(start);
  gemm(turn_a, turn_b, alpha, a, b, beta, c.view());

  Matrix<double> expected = to_double(start);
  reference::gemm(turn_a, turn_b, alpha, to_double(a), to_double(b), beta, expected);
  Matrix<double> magnitude = absolute(to_double(start));
  reference::gemm(turn_a, turn_b, std::abs(alpha), absolute(to_double(a)), absolute(to_double(b)),
                  std::abs(beta), magnitude);
  EXPECT_LE(largest_error<T>(c.view(), expected, magnitude), tolerance<T>);
  EXPECT_TRUE(c.margins_intact());
}

TYPED_TEST(Gemm, AgreesWithTheReference) {
  const Case shapes[] = {{1, 1, 1},     {15, 17, 16},  {16, 16, 16},  {33, 31, 7},
                         {17, 257, 33}, {600, 7, 129}, {300, 64, 64}, {5, 3, 5000}};
  for (const Case& shape : shapes) {
    for (const Transpose turn_a : {Transpose::no, Transpose::yes}) {
      for (const Transpose turn_b : {Transpose::no, Transpose::yes}) {
        compare_with_reference<TypeParam>(shape, turn_a, turn_b, 1.5, 0);
        compare_with_reference<TypeParam>(shape, turn_a, turn_b, 1, 0.5);
      }
    }
  }
}

TYPED_TEST(Gemm, GivesTheSameBitsForAnyNumberOfThreads) {
  const Case shapes[] = {{700, 33, 65}, {17, 9, 20000}, {130, 5000, 3}, {1433, 16, 2708}};
  for (const Case& shape : shapes) {
    const auto a = normal_matrix<TypeParam>(shape.inner, shape.rows, 21);
    const auto b = normal_matrix<TypeParam>(shape.inner, shape.cols, 22);
    Matrix<TypeParam> expected(shape.rows, shape.cols);
    set_num_threads(1);
    gemm(Transpose::yes, Transpose::no, 1, a, b, 0, expected);
    for (const int threads : {2, 3}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, " << shape.inner << " inner");
      set_num_threads(threads);
      Matrix<TypeParam> got(shape.rows, shape.cols);
      gemm(Transpose::yes, Transpose::no, 1, a, b, 0, got);
      EXPECT_TRUE(test::same_bits(expected, got));
    }
  }
}

TYPED_TEST(Gemm, IsExactOnSmallIntegers) {
  Matrix<TypeParam> a(40, 3000, TypeParam{2}), b(3000, 8, TypeParam{3}), c(40, 8);
  gemm(Transpose::no, Transpose::no, 1, a, b, 0, c);
  for (const TypeParam value : c.span()) EXPECT_EQ(value, TypeParam{18000});
}

TYPED_TEST(Gemm, ForgetsWhatTheOutputHeldWhenBetaIsZero) {
  const auto nan = std::numeric_limits<TypeParam>::quiet_NaN();
  for (const std::int64_t inner : {0, 4, 9000}) {
    SCOPED_TRACE(inner);
    Matrix<TypeParam> a(3, inner, TypeParam{1}), b(inner, 2, TypeParam{1}), c(3, 2, nan);
    gemm(Transpose::no, Transpose::no, 1, a, b, 0, c);
    for (const TypeParam value : c.span()) EXPECT_EQ(value, static_cast<TypeParam>(inner));
  }
}

TYPED_TEST(Gemm, ScalesTheOutputWhenThereIsNothingToAdd) {
  Matrix<TypeParam> a(3, 0), b(0, 2), c(3, 2, TypeParam{4});
  gemm(Transpose::no, Transpose::no, 1, a, b, 0.25, c);
  for (const TypeParam value : c.span()) EXPECT_EQ(value, TypeParam{1});
}

TYPED_TEST(Gemm, PassesNotANumberOn) {
  auto a = normal_matrix<TypeParam>(20, 5, 1);
  const auto b = normal_matrix<TypeParam>(5, 3, 2);
  a(7, 2) = std::numeric_limits<TypeParam>::quiet_NaN();
  Matrix<TypeParam> c(20, 3);
  gemm(Transpose::no, Transpose::no, 1, a, b, 0, c);
  for (std::int64_t i = 0; i < 20; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) EXPECT_EQ(std::isnan(c(i, j)), i == 7);
  }
}

TYPED_TEST(Gemm, AcceptsEmptyShapes) {
  Matrix<TypeParam> a(0, 5), b(5, 3), c(0, 3), d(5, 0), e(3, 5, TypeParam{1}), f(3, 0);
  EXPECT_NO_THROW(gemm(Transpose::no, Transpose::no, 1, a, b, 0, c));
  EXPECT_NO_THROW(gemm(Transpose::no, Transpose::no, 1, e, d, 0, f));
}

TEST(GemmErrors, NameTheOperandAndBothShapes) {
  Matrix<float> a(3, 4), b(5, 2), c(3, 2);
  EXPECT_EQ(test::argument_problem([&] { gemm(Transpose::no, Transpose::no, 1, a, b, 0, c); }),
            "gemm: b is 5 x 2, expected 4 x 2");
  Matrix<double> d(4, 2);
  EXPECT_EQ(test::argument_problem([&] { gemm(Transpose::no, Transpose::no, 1, a, d, 0, c); }),
            "gemm: b is fp64, expected fp32");
  Matrix<Float16> half(3, 2);
  EXPECT_EQ(test::argument_problem([&] { gemm(Transpose::no, Transpose::no, 1, a, b, 0, half); }),
            "gemm: c is fp16, expected fp64, fp32 or bf16 on the CPU");
  const MatrixView<float> nowhere(nullptr, 3, 4);
  EXPECT_EQ(
      test::argument_problem([&] { gemm(Transpose::no, Transpose::no, 1, nowhere, b, 0, c); }),
      "gemm: a is 3 x 4 but has no memory");
}

TEST(GemmErrors, RejectAnOutputOnTopOfAnInput) {
  Matrix<float> a(4, 4, 0.0f);
  EXPECT_THAT(test::argument_problem([&] { gemm(Transpose::no, Transpose::no, 1, a, a, 0, a); }),
              testing::HasSubstr("c shares memory with a"));
  // Two halves of one matrix do not meet.
  Matrix<float> wide(4, 8, 1.0f);
  const MatrixView<float> left(wide.data(), 4, 4, 8), right(wide.data() + 4, 4, 4, 8);
  EXPECT_NO_THROW(gemm(Transpose::no, Transpose::no, 1, left, a, 0, right));
}

TEST(GemmErrors, SayThatADeviceIsAbsent) {
  Matrix<float> a(1, 1, 0.0f), c(1, 1);
  try {
    gemm(Transpose::no, Transpose::no, 1, a, a, 0, c, Device{DeviceKind::cuda, 99});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::backend_unavailable);
  }
}

}  // namespace
}  // namespace tessera::ops
