// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/loss/reference.hpp"
#include "support/dense_backends.hpp"
#include "support/dense_shapes.hpp"
#include "support/dense_workspace.hpp"
#include "support/matrices.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/evaluation.hpp"

/// What is counted where the logits are, on every device, against plain loops.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::margins;
using test::normal_matrix;
using test::to_double;
using test::with_type_of;

constexpr std::int64_t row_counts[] = {0, 1, 15, 16, 17, 31, 33, 800, 20000};

class Evaluations : public ::testing::TestWithParam<test::DenseBackend> {
 protected:
  Device device() const { return GetParam().device; }
  Precision precision() const { return GetParam().precision; }
};

/// Parts that overlap, leave rows out and name some twice.
struct Parts {
  std::vector<std::int64_t> train, validation, test;

  explicit Parts(std::int64_t rows) {
    for (std::int64_t i = 0; i < rows; ++i) {
      if (i % 4 == 0) train.push_back(i);
      if (i % 4 == 1 || i % 9 == 0) validation.push_back(i);
      if (i % 4 == 2) test.push_back(rows - 1 - i);
      if (i % 16 == 1) validation.push_back(i);
    }
  }
  EvaluatedRows rows() const { return {train, validation, test}; }
};

/// Small whole numbers, so that many are equal.
template <class T>
Matrix<T> logits_with_ties(std::int64_t rows, std::int64_t cols) {
  auto logits = normal_matrix<T>(rows, cols, 1);
  for (T& value : logits.span()) {
    value = static_cast<T>(std::round(static_cast<float>(value) * 2));
  }
  return logits;
}

std::int64_t predicted(const Matrix<double>& logits, std::int64_t row) {
  std::int64_t best = 0;
  for (std::int64_t k = 0; k < logits.cols(); ++k) {
    if (std::isnan(logits(row, k))) return -1;
    if (logits(row, k) > logits(row, best)) best = k;
  }
  return best;
}

PartCounts count_classes(const Matrix<double>& logits, const std::vector<std::int64_t>& labels,
                         const std::vector<std::int64_t>& rows) {
  PartCounts counts;
  for (const std::int64_t row : rows) {
    ++(predicted(logits, row) == labels[static_cast<std::size_t>(row)] ? counts.right
                                                                       : counts.wrong);
  }
  return counts;
}

PartCounts count_answers(const Matrix<double>& logits, const Matrix<float>& targets,
                         const std::vector<std::int64_t>& rows) {
  PartCounts counts;
  for (const std::int64_t row : rows) {
    for (std::int64_t k = 0; k < logits.cols(); ++k) {
      const bool said = logits(row, k) > 0, is = targets(row, k) == 1;
      counts.right += said && is ? 1 : 0;
      counts.wrong += said != is ? 1 : 0;
    }
  }
  return counts;
}

template <class T>
EvaluationNumbers numbers_of(const Matrix<T>& logits, const EvaluationTargets& targets,
                             std::int64_t margin, Device device) {
  DeviceMatrix<T> x(logits, device, margin);
  Buffer<EvaluationNumbers> numbers(1, default_memory(device));
  const auto run = [&] {
    evaluate(x, targets, numbers.data(), {}, test::workspace_on(device));
    EvaluationNumbers result;
    copy_bytes(&result, numbers.data(), sizeof(result), device);
    synchronise(device);
    return result;
  };
  const EvaluationNumbers result = run();
  if (!std::isnan(result.validation_loss)) {
    EXPECT_EQ(run(), result) << "not the same bits twice";
  }
  return result;
}

void expect_numbers(const EvaluationNumbers& got, const EvaluationNumbers& expected) {
  EXPECT_EQ(got.train, expected.train);
  EXPECT_EQ(got.validation, expected.validation);
  EXPECT_EQ(got.test, expected.test);
  EXPECT_NEAR(got.validation_loss, expected.validation_loss, 1e-6 * (1 + expected.validation_loss));
}

TEST_P(Evaluations, classes_are_counted_as_by_plain_loops) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : row_counts) {
      for (const std::int64_t classes : {1, 2, 7, 16, 22, 33, 41, 64, 100, 257, 1025}) {
        if (rows * classes > 2000000) continue;
        SCOPED_TRACE(::testing::Message() << rows << " x " << classes);
        const auto logits = logits_with_ties<T>(rows, classes);
        const Parts parts(rows);
        std::vector<std::int64_t> labels;
        for (std::int64_t i = 0; i < rows; ++i) labels.push_back(i * 7 % classes);
        const Matrix<double> wide = to_double(logits);
        const EvaluationNumbers expected{
            count_classes(wide, labels, parts.train), count_classes(wide, labels, parts.validation),
            count_classes(wide, labels, parts.test),
            parts.validation.empty()
                ? 0
                : reference::cross_entropy(wide, labels, parts.validation, {})};
        const auto targets = EvaluationTargets::classes(labels, parts.rows(), classes, device());
        for (const std::int64_t margin : {margins[(rows + classes) % 3], (8 - classes % 8) % 8}) {
          expect_numbers(numbers_of(logits, targets, margin, device()), expected);
        }
      }
    }
  });
}

TEST_P(Evaluations, answers_are_counted_as_by_plain_loops) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : row_counts) {
      for (const std::int64_t cols : {1, 7, 16, 33, 121}) {
        if (rows * cols > 1000000) continue;
        SCOPED_TRACE(::testing::Message() << rows << " x " << cols);
        const auto logits = logits_with_ties<T>(rows, cols);
        const Parts parts(rows);
        Matrix<float> wanted(rows, cols);
        for (std::int64_t i = 0; i < wanted.size(); ++i) {
          wanted.data()[i] = i % 3 == 0 ? 1.0f : 0.0f;
        }
        const Matrix<double> wide = to_double(logits);
        const EvaluationNumbers expected{
            count_answers(wide, wanted, parts.train), count_answers(wide, wanted, parts.validation),
            count_answers(wide, wanted, parts.test),
            parts.validation.empty()
                ? 0
                : reference::binary_cross_entropy(wide, wanted, parts.validation, {})};
        const auto targets = EvaluationTargets::binary(wanted, parts.rows(), device());
        expect_numbers(numbers_of(logits, targets, margins[(rows + cols) % 3], device()), expected);
      }
    }
  });
}

TEST_P(Evaluations, what_is_not_a_number_predicts_nothing) {
  with_type_of(precision(), [&]<class T>() {
    const auto lowest = static_cast<T>(-std::numeric_limits<float>::infinity());
    for (const std::int64_t classes : {3, 40}) {
      Matrix<T> logits(4, classes, T{});
      for (std::int64_t k = 0; k < classes; ++k) logits(1, k) = lowest;
      logits(2, classes - 1) = static_cast<T>(std::nanf(""));
      logits(3, classes - 1) = static_cast<T>(1.0f);
      const std::vector<std::int64_t> labels = {0, 0, 0, classes - 1};
      const std::vector<std::int64_t> all = {0, 1, 2, 3}, bad = {2}, good = {0, 3};
      const EvaluationNumbers numbers = numbers_of(
          logits, EvaluationTargets::classes(labels, {all, good, bad}, classes, device()), 3,
          device());
      EXPECT_EQ(numbers.train, (PartCounts{3, 1}));
      EXPECT_EQ(numbers.validation, (PartCounts{2, 0}));
      EXPECT_EQ(numbers.test, (PartCounts{0, 1}));
      EXPECT_TRUE(std::isfinite(numbers.validation_loss));
      const EvaluationNumbers lost = numbers_of(
          logits, EvaluationTargets::classes(labels, {all, bad, good}, classes, device()), 3,
          device());
      EXPECT_TRUE(std::isnan(lost.validation_loss));
    }
  });
}

TEST_P(Evaluations, refuse_what_cannot_be_counted) {
  const std::vector<std::int64_t> labels = {0, 1, -1}, some = {0, 1}, unlabelled = {2}, far = {3};
  EXPECT_THROW(EvaluationTargets::classes(labels, {some, some, unlabelled}, 2, device()), Error);
  EXPECT_THROW(EvaluationTargets::classes(labels, {some, far, some}, 2, device()), Error);
  const auto targets = EvaluationTargets::classes(labels, {some, some, some}, 2, device());
  DeviceMatrix<float> wide(3, 3, device());
  Buffer<EvaluationNumbers> numbers(1, default_memory(device()));
  EXPECT_THROW(evaluate(wide, targets, numbers.data(), {}, test::workspace_on(device())), Error);
}

INSTANTIATE_TEST_SUITE_P(Backends, Evaluations, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
