// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "support/counting_memory.hpp"

namespace tessera::test {

/// Calls `work` once as it is, then lets each of its allocations fail, and all that follow: that
/// gives one error each time, which says what is missing, and nothing stays behind.
template <class Work>
void expect_one_error_when_dry(CountingMemory& memory, Work&& work) {
  const std::int64_t before = memory.num_allocations();
  work();
  const std::int64_t needed = memory.num_allocations() - before;
  EXPECT_GT(needed, 0) << "nothing is taken from the resource";
  EXPECT_EQ(memory.num_live(), 0);
  for (std::int64_t nth = 1; nth <= needed; ++nth) {
    memory.fail_from(nth);
    try {
      work();
      ADD_FAILURE() << "allocation " << nth << " failed, and nobody noticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
    }
    EXPECT_EQ(memory.num_live(), 0) << "after the failure of allocation " << nth;
    memory.never_fail();
  }
  EXPECT_EQ(memory.num_wrong_releases(), 0);
}

/// The same with single failures, after which the work may find another way.
template <class Work>
void expect_nothing_left_after_one_failure(CountingMemory& memory, Work&& work) {
  const std::int64_t before = memory.num_allocations();
  work();
  const std::int64_t needed = memory.num_allocations() - before;
  for (std::int64_t nth = 1; nth <= needed; ++nth) {
    memory.fail_once(nth);
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
    }
    EXPECT_EQ(memory.num_live(), 0) << "after one failure, of allocation " << nth;
    memory.never_fail();
  }
  EXPECT_EQ(memory.num_wrong_releases(), 0);
}

}  // namespace tessera::test
