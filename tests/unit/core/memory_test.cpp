// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/memory.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <numeric>

#include "tessera/core/shared_array.hpp"

#include "support/expect_error.hpp"

namespace tessera {
namespace {

using testing::expect_error;

/// Counts what it is asked for.
class CountingMemory final : public MemoryResource {
 public:
  void* allocate(std::size_t bytes, Stream) override {
    ++allocations;
    return bytes == 0 ? nullptr : std::malloc(bytes);
  }
  void deallocate(void* memory, std::size_t bytes, Stream) noexcept override {
    ++deallocations;
    freed_bytes += bytes;
    std::free(memory);
  }
  Device device() const noexcept override { return {}; }

  int allocations = 0;
  int deallocations = 0;
  std::size_t freed_bytes = 0;
};

TEST(Buffer, IsAlignedAndHoldsItsValues) {
  for (const std::int64_t size : {1, 17, 1000, 3000000}) {
    Buffer<float> buffer(size, 2.5f);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_EQ(buffer[size - 1], 2.5f);
    EXPECT_EQ(buffer.span().size(), static_cast<std::size_t>(size));
  }
  EXPECT_TRUE(Buffer<float>(0).empty());
  EXPECT_TRUE(Buffer<float>().empty());
}

TEST(Buffer, MovesWithoutCopying) {
  Buffer<int> buffer(3, 7);
  const int* const data = buffer.data();
  Buffer<int> moved = std::move(buffer);
  EXPECT_EQ(moved.data(), data);
  Buffer<int> assigned(5);
  assigned = std::move(moved);
  EXPECT_EQ(assigned.data(), data);
  EXPECT_EQ(assigned.size(), 3);
}

TEST(Buffer, UsesTheCallersMemory) {
  CountingMemory memory;
  {
    Buffer<double> buffer(10, memory);
    Buffer<double> other = std::move(buffer);
    EXPECT_EQ(memory.allocations, 1);
    EXPECT_EQ(memory.deallocations, 0);
  }
  EXPECT_EQ(memory.deallocations, 1);
  EXPECT_EQ(memory.freed_bytes, 80u);
}

TEST(HostMemory, CountsWhatItHandsOut) {
  const MemoryUse before = host_memory_use();
  reset_host_memory_peak();
  {
    const Buffer<std::byte> buffer(1 << 20);
    EXPECT_EQ(host_memory_use().current_bytes, before.current_bytes + (1 << 20));
  }
  EXPECT_EQ(host_memory_use().current_bytes, before.current_bytes);
  EXPECT_GE(host_memory_use().peak_bytes, before.current_bytes + (1 << 20));
}

TEST(HostMemory, RefusesWhatNoMachineHas) {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  expect_error(ErrorCode::out_of_memory, {"GiB"}, [] { Buffer<std::byte> buffer(huge / 2); });
  expect_error(ErrorCode::out_of_memory, {"overflows"}, [] { Buffer<double> buffer(huge / 2); });
  expect_error(ErrorCode::invalid_argument, {"negative"}, [] { Buffer<double> buffer(-1); });
}

TEST(CheckedArea, CatchesOverflow) {
  EXPECT_EQ(checked_area(3, 5), 15);
  EXPECT_EQ(checked_area(0, std::numeric_limits<std::int64_t>::max()), 0);
  EXPECT_THROW(checked_area(std::int64_t{1} << 32, std::int64_t{1} << 31), Error);
  EXPECT_THROW(checked_area(-1, 1), Error);
}

TEST(Memory, UseOfTheCpuIsThatOfTheHost) {
  const Buffer<int> buffer(1000);
  EXPECT_EQ(memory_use({}).current_bytes, host_memory_use().current_bytes);
  reset_memory_peak({});
  EXPECT_EQ(memory_use({}).peak_bytes, memory_use({}).current_bytes);
  if (num_gpus() == 0) {
    EXPECT_THROW(memory_use({DeviceKind::cuda, 0}), Error);
  }
}

TEST(SharedArray, SharesAndKeepsItsOwnerAlive) {
  SharedArray<int> copy;
  {
    const SharedArray<int> array(std::vector<int>{1, 2, 3});
    copy = array;
    EXPECT_EQ(copy.data(), array.data());
  }
  EXPECT_EQ(copy.size(), 3);
  EXPECT_EQ(copy.back(), 3);
  EXPECT_EQ(std::accumulate(copy.begin(), copy.end(), 0), 6);
}

TEST(SharedArray, BorrowsAndCompares) {
  auto owner = std::make_shared<std::vector<int>>(std::vector<int>{4, 5, 6});
  const SharedArray<int> part(owner, owner->data() + 1, 2);
  const std::weak_ptr<std::vector<int>> watch = owner;
  owner.reset();
  EXPECT_FALSE(watch.expired());
  Buffer<int> buffer(2);
  buffer[0] = 5;
  buffer[1] = 6;
  EXPECT_EQ(part, SharedArray<int>(std::move(buffer)));
  EXPECT_NE(part, SharedArray<int>(std::vector<int>{5}));
  EXPECT_TRUE(SharedArray<int>().empty());
}

}  // namespace
}  // namespace tessera
