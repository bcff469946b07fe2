// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/workspace.hpp"

#include <gtest/gtest.h>

#include "support/counting_memory.hpp"
#include "support/expect_error.hpp"

namespace tessera::ops {
namespace {

using test::CountingMemory;
using testing::expect_error;

TEST(Workspace, PartsLieSideBySideOnBoundaries) {
  WorkspaceNeed need;
  const auto floats = need.add<float>(3);
  const auto none = need.add<double>(0);
  const auto doubles = need.add<double>(100);
  need.add_counters(5);
  EXPECT_EQ(need.counter_bytes(), 256);
  EXPECT_EQ(need.total_bytes(), 256 + 256 + 1024);
  alignas(256) std::byte memory[2048];
  const WorkspaceView view = need.view(memory);
  EXPECT_EQ(static_cast<void*>(view.counters), memory);
  EXPECT_EQ(static_cast<void*>(floats.in(view)), memory + 256);
  EXPECT_EQ(none.in(view), nullptr);
  EXPECT_EQ(static_cast<void*>(doubles.in(view)), memory + 512);
}

TEST(Workspace, KernelsThatFollowEachOtherShareIt) {
  WorkspaceNeed small, large;
  small.add<float>(10);
  small.add_counters(100);
  large.add<float>(1000);
  large.add_counters(1);
  WorkspaceNeed both = small;
  both.cover(large);
  EXPECT_EQ(both.total_bytes(), 512 + 4096);
  WorkspaceNeed outer;
  outer.add<float>(64);
  const auto inside = outer.add_for({small, large});
  EXPECT_EQ(inside.offset, 256);
  EXPECT_EQ(outer.total_bytes(), 512 + 256 + 4096);
}

TEST(Workspace, KernelsThatOverlapHavePartsOfTheirOwn) {
  WorkspaceNeed first, second;
  first.add<float>(10);
  first.add_counters(3);
  const auto floats = second.add<float>(100);
  second.add_counters(5);
  WorkspaceNeed both;
  const WorkspaceShare of_first = both.add_beside(first);
  const WorkspaceShare of_second = both.add_beside(second);
  EXPECT_EQ(both.total_bytes(), 256 + 256 + 512);
  alignas(256) std::byte memory[1024];
  const WorkspaceView view = both.view(memory);
  EXPECT_EQ(of_first.in(view).counters, view.counters);
  EXPECT_EQ(of_second.in(view).counters, view.counters + 3);
  EXPECT_EQ(static_cast<void*>(of_first.in(view).bytes), memory + 256);
  EXPECT_EQ(static_cast<void*>(floats.in(of_second.in(view))), memory + 512);
}

TEST(Workspace, TheOwnOneIsClearedOnceAndALentOneAtEachRun) {
  CountingMemory memory{Device{}};
  WorkspaceNeed need;
  need.add<float>(10);
  need.add_counters(3);
  {
    const PlanWorkspace workspace(need, {Device{}, &memory});
    EXPECT_EQ(memory.live_bytes(), need.total_bytes());
    unsigned* counters = nullptr;
    {
      const WorkspaceUse use(workspace, {}, {});
      counters = use.view().counters;
      EXPECT_EQ(counters[0] | counters[1] | counters[2], 0u);
      counters[1] = 7;  // what no kernel leaves behind
    }
    EXPECT_EQ(WorkspaceUse(workspace, {}, {}).view().counters[1], 7u);
    alignas(256) std::byte lent[1024];
    for (std::byte& byte : lent) byte = std::byte{0xa5};
    const WorkspaceUse use(workspace, {lent, sizeof(lent)}, {});
    EXPECT_EQ(static_cast<void*>(use.view().counters), lent);
    EXPECT_EQ(use.view().counters[0] | use.view().counters[2], 0u);
    EXPECT_EQ(use.view().bytes[0], std::byte{0xa5});
  }
  EXPECT_EQ(memory.num_live(), 0);
  EXPECT_EQ(memory.num_wrong_releases(), 0);
}

TEST(Workspace, ALentOneMustFit) {
  WorkspaceNeed need;
  need.add<float>(1000);
  const PlanWorkspace workspace(need, Device{}, false);
  alignas(256) std::byte lent[8192];
  expect_error(ErrorCode::invalid_argument, {"too small"}, [&] {
    WorkspaceUse(workspace, {lent, 4000}, {});
  });
  expect_error(ErrorCode::invalid_argument, {"aligned"}, [&] {
    WorkspaceUse(workspace, {lent + 64, 8000}, {});
  });
  expect_error(ErrorCode::invalid_argument, {"no workspace of its own"},
               [&] { WorkspaceUse(workspace, {}, {}); });
  EXPECT_EQ(static_cast<void*>(WorkspaceUse(workspace, {lent, 8192}, {}).view().bytes), lent);
}

TEST(Workspace, OnTheCpuOneRunAtATime) {
  WorkspaceNeed need;
  need.add<float>(10);
  const PlanWorkspace workspace(need, Device{});
  alignas(256) std::byte lent[1024];
  {
    const WorkspaceUse first(workspace, {}, {});
    for (int again = 0; again < 2; ++again) {
      expect_error(ErrorCode::invalid_argument, {"another thread", "plan for each thread"},
                   [&] { WorkspaceUse(workspace, {}, {}); });
      expect_error(ErrorCode::invalid_argument, {"another thread"}, [&] {
        WorkspaceUse(workspace, {lent, sizeof(lent)}, {});
      });
    }
    expect_error(ErrorCode::invalid_argument, {"too small"}, [&] {
      WorkspaceUse(workspace, {lent, 8}, {});
    });
  }
  const WorkspaceUse next(workspace, {}, {});
  EXPECT_NE(next.view().bytes, nullptr);
}

TEST(Workspace, AMemoryOfAnotherDeviceIsRejected) {
  CountingMemory memory{Device{}};
  expect_error(ErrorCode::invalid_argument, {"memory of cpu for work on cuda:3"}, [&] {
    Place({DeviceKind::cuda, 3}, &memory).resource();
  });
}

}  // namespace
}  // namespace tessera::ops
