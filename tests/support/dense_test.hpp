// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "support/dense_backends.hpp"

namespace tessera::test {

/// A test of dense ops, once for every device and precision.
class DenseTest : public ::testing::TestWithParam<DenseBackend> {
 protected:
  Device device() const { return GetParam().device; }
  Precision precision() const { return GetParam().precision; }
};

}  // namespace tessera::test
