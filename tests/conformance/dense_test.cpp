// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <type_traits>

#include <gtest/gtest.h>

#include "ops/gemm/reference.hpp"
#include "support/dense_shapes.hpp"
#include "support/dense_test.hpp"
#include "support/dense_workspace.hpp"
#include "support/expect_error.hpp"
#include "support/gemm_check.hpp"
#include "support/matrices.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/gemm.hpp"

/// Products, copies and sums of dense matrices on every device and in every precision against the
/// references.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::expect_close;
using test::margins;
using test::normal_matrix;
using test::row_counts;
using test::to_double;
using test::widths;
using test::with_type_of;

class Dense : public test::DenseTest {};

TEST_P(Dense, gemm_agrees_with_the_reference) {
  const test::ProductShape shapes[] = {{1, 1, 1},     {15, 17, 16},  {33, 31, 7},  {17, 257, 33},
                                       {600, 7, 129}, {300, 64, 64}, {5, 3, 5000}, {0, 4, 3},
                                       {4, 0, 3},     {5, 6, 0}};
  with_type_of(precision(), [&]<class T>() {
    for (const test::ProductShape& shape : shapes) {
      for (const Transpose turn_a : {Transpose::no, Transpose::yes}) {
        for (const Transpose turn_b : {Transpose::no, Transpose::yes}) {
          test::check_gemm<T>(shape, turn_a, turn_b, {{0, 0}, {0.5, 3}}, device());
        }
      }
    }
  });
}

TEST_P(Dense, gemm_of_integers_is_exact_and_forgets_what_was_there) {
  with_type_of(precision(), [&]<class T>() {
    const auto of = [](float value) { return static_cast<T>(value); };
    for (const std::int64_t inner : {0, 4, 120}) {
      DeviceMatrix<T> a(Matrix<T>(9, inner, of(2)), device(), 0);
      DeviceMatrix<T> b(Matrix<T>(inner, 8, of(1)), device(), 0);
      DeviceMatrix<T> c(Matrix<T>(9, 8, of(std::numeric_limits<float>::quiet_NaN())), device());
      gemm(Transpose::no, Transpose::no, 1, a, b, 0, c, device(), {}, test::workspace_on(device()));
      const Matrix<T> product = c.values();
      for (const T value : product.span()) {
        EXPECT_EQ(static_cast<double>(value), 2.0 * static_cast<double>(inner));
      }
    }
  });
}

TEST(DenseOnGpu, gemm_of_16_bits_into_fp32) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Device device{DeviceKind::cuda, 0};
  const auto a = normal_matrix<Bfloat16>(65, 40, 1);
  const auto b = normal_matrix<Bfloat16>(40, 24, 2);
  DeviceMatrix<Bfloat16> a_there(a, device), b_there(b, device);
  DeviceMatrix<float> c(65, 24, device);
  gemm(Transpose::no, Transpose::no, 1, a_there, b_there, 0, c, device, {},
       test::workspace_on(device));
  Matrix<double> expected(65, 24);
  reference::gemm(Transpose::no, Transpose::no, 1, to_double(a), to_double(b), 0, expected);
  expect_close("c", c.values(), expected, 2e-6, 30);
}

TEST(DenseOnGpu, refuses_fp64) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Device device{DeviceKind::cuda, 0};
  Matrix<double> x(2, 2, default_memory(device));
  testing::expect_error(ErrorCode::invalid_argument, {"fill", "y is fp64", "fp32, bf16 or fp16"},
                        [&] { fill(x, 1, device); });
}

TEST_P(Dense, fill_copy_and_transpose_move_every_element) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : row_counts) {
      for (const std::int64_t cols : widths) {
        for (const std::int64_t margin : margins) {
          SCOPED_TRACE(::testing::Message() << rows << " x " << cols << " margin " << margin);
          const auto x = normal_matrix<T>(rows, cols, 1);
          DeviceMatrix<T> there(x, device(), margin), copied(rows, cols, device(), margin);
          DeviceMatrix<T> turned(cols, rows, device(), margin);
          copy(there, copied, device());
          EXPECT_TRUE(test::same_bits(x, copied.values()));
          transpose(there, turned, device());
          const Matrix<T> result = turned.values();
          for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < cols; ++j) {
              ASSERT_EQ(static_cast<double>(result(j, i)), static_cast<double>(x(i, j)));
            }
          }
          fill(there, 2.5, device());
          const Matrix<T> filled = there.values();
          for (const T value : filled.span()) ASSERT_EQ(static_cast<double>(value), 2.5);
        }
      }
    }
  });
}

TEST_P(Dense, uploads_and_downloads_convert) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t margin : {0, 3}) {
      const auto wide = normal_matrix<double>(17, 5, 3);
      const auto stored = normal_matrix<T>(17, 5, 3);
      DeviceMatrix<T> there(17, 5, device(), margin);
      upload(wide, there, device());
      Matrix<double> back(17, 5);
      download(there, back, device());
      for (std::int64_t i = 0; i < back.size(); ++i) {
        EXPECT_EQ(back.data()[i], static_cast<double>(stored.data()[i]));
      }
      EXPECT_TRUE(test::same_bits(stored, there.values()));
    }
  });
}

TEST_P(Dense, add_scaled_and_its_learned_form) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t cols : widths) {
      for (const std::int64_t margin : margins) {
        SCOPED_TRACE(::testing::Message() << cols << " margin " << margin);
        const auto x = normal_matrix<T>(33, cols, 1);
        const auto y = normal_matrix<T>(33, cols, 2);
        const auto factor = normal_matrix<T>(1, 1, 4);
        const Matrix<T> unknown(33, cols, static_cast<T>(std::nanf("")));
        DeviceMatrix<T> from(x, device(), margin), to(y, device(), margin);
        DeviceMatrix<T> fresh(unknown, device(), margin), learned(factor, device(), 0);
        add_scaled(2, from, -3, to, device());
        add_scaled_by(learned, 1, from, 0, fresh, device());
        Matrix<double> expected(33, cols), expected_fresh(33, cols);
        for (std::int64_t i = 0; i < x.size(); ++i) {
          const auto value = static_cast<double>(x.data()[i]);
          expected.data()[i] = 2 * value - 3 * static_cast<double>(y.data()[i]);
          expected_fresh.data()[i] = (1 + static_cast<double>(factor(0, 0))) * value;
        }
        expect_close("add_scaled", to.values(), expected, 1e-6);
        expect_close("add_scaled_by", fresh.values(), expected_fresh, 1e-6);
        add_scaled(0.5, from, 0, from, device());
        EXPECT_EQ(static_cast<double>(from.values()(0, 0)), 0.5 * static_cast<double>(x(0, 0)));
      }
    }
  });
}

TEST_P(Dense, scale_rows_rounds_once) {
  with_type_of(precision(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, double>) {
      for (const std::int64_t cols : {1, 7, 16, 33, 41, 64, 257}) {
        for (const std::int64_t margin : margins) {
          SCOPED_TRACE(::testing::Message() << cols << " margin " << margin);
          const auto x = normal_matrix<float>(37, cols, 1);
          const auto narrow = normal_matrix<T>(37, cols, 1);
          const auto factors = normal_matrix<float>(37, 1, 2);
          DeviceMatrix<float> from(x, device(), margin), scale(factors, device(), 0);
          DeviceMatrix<T> to(37, cols, device(), margin), same(narrow, device(), margin);
          scale_rows(from, scale, to, device());
          scale_rows(same, scale, same, device());
          const Matrix<T> result = to.values(), in_place = same.values();
          for (std::int64_t i = 0; i < 37; ++i) {
            for (std::int64_t j = 0; j < cols; ++j) {
              ASSERT_EQ(static_cast<float>(result(i, j)),
                        static_cast<float>(static_cast<T>(factors(i, 0) * x(i, j))));
              const float product = factors(i, 0) * static_cast<float>(narrow(i, j));
              ASSERT_EQ(static_cast<float>(in_place(i, j)),
                        static_cast<float>(static_cast<T>(product)));
            }
          }
        }
      }
    }
  });
}

TEST_P(Dense, dot_adds_all_products) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : {0, 1, 17, 5000}) {
      for (const std::int64_t margin : margins) {
        const auto x = normal_matrix<T>(rows, 16, 1);
        const auto y = normal_matrix<T>(rows, 16, 2);
        DeviceMatrix<T> a(x, device(), margin), b(y, device(), margin), sum(1, 1, device(), 0);
        dot(a, b, sum, device(), {}, test::workspace_on(device()));
        Matrix<double> expected(1, 1, 0.0);
        for (std::int64_t i = 0; i < x.size(); ++i) {
          expected(0, 0) += static_cast<double>(x.data()[i]) * static_cast<double>(y.data()[i]);
        }
        expect_close("sum", sum.values(), expected, 1e-6);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, Dense, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
