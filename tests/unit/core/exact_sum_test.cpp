// SPDX-License-Identifier: Apache-2.0
#include "core/exact_sum.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(ExactSum, KeepsWhatAPlainSumLoses) {
  ExactSum sum;
  for (const double term : {1.0, 1e100, 1.0, -1e100}) sum += term;
  EXPECT_EQ(sum.value(), 2);
  ExactSum tenths;
  for (int i = 0; i < 1000000; ++i) tenths += 0.1;
  EXPECT_EQ(tenths.value(), 1000000 * 0.1);
}

TEST(ExactSum, PassesOnWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  ExactSum sum;
  sum += 1;
  sum += infinity;
  sum += 1;
  EXPECT_EQ(sum.value(), infinity);
  sum += -infinity;
  EXPECT_TRUE(std::isnan(sum.value()));
}

TEST(ExactSums, WriteAMatrixOrNothing) {
  Matrix<double> to(2, 2, 7.0);
  ExactSums sums(to);
  sums.add(0, 1, 1);
  sums.add(0, 1, 2);
  sums.store();
  EXPECT_EQ(to(0, 1), 3);
  EXPECT_EQ(to(1, 1), 0);
  ExactSums unwanted(MatrixView<double>{});
  unwanted.add(5, 5, 1);
  unwanted.store();
}

}  // namespace
}  // namespace tessera
