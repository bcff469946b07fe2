// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "tessera/core/error.hpp"

namespace tessera::test {

/// What an `invalid_argument` error of `call` says; "no error" if there is none.
template <class Call>
std::string argument_problem(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "no error";
}

}  // namespace tessera::test
