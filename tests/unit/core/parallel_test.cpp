// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/parallel.hpp"

#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tessera/core/error.hpp"

#include "core/crew.hpp"
#include "core/openmp_limit.hpp"

#include "support/random_coo.hpp"

namespace tessera {
namespace {

using testing::ThreadScope;

TEST(Parallel, TheNumberOfThreadsIsSettable) {
  EXPECT_GE(num_threads(), 1);
  {
    const ThreadScope scope(3);
    EXPECT_EQ(num_threads(), 3);
  }
  EXPECT_THROW(set_num_threads(-1), Error);
}

TEST(Parallel, FollowsWhatOpenMpAllows) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(2);
  EXPECT_EQ(num_threads(), 2);
  {
    const OneOpenMpThread one;
    EXPECT_EQ(omp_get_max_threads(), 1);
    EXPECT_EQ(num_threads(), 2) << "our own loops keep what they had";
    const OneOpenMpThread nested;
    EXPECT_EQ(num_threads(), 2);
  }
  EXPECT_EQ(omp_get_max_threads(), 2);
  omp_set_num_threads(before);
}

TEST(Parallel, EveryTaskRunsOnce) {
  for (const int threads : {1, 2, 5}) {
    for (const std::int64_t count : {0, 1, 15, 16, 17, 1000}) {
      SCOPED_TRACE(::testing::Message() << threads << " threads, " << count << " tasks");
      const ThreadScope scope(threads);
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
      parallel_tasks(count, [&](std::int64_t task) { ++runs[static_cast<std::size_t>(task)]; });
      for (const auto& times : runs) EXPECT_EQ(times.load(), 1);
    }
  }
}

TEST(Parallel, RangesCoverTheCountWhateverTheGrain) {
  for (const std::int64_t grain : {1, 7, 16, 100}) {
    std::vector<std::atomic<int>> hits(33);
    parallel_ranges(33, grain, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_LE(end - begin, grain);
      EXPECT_EQ(begin % grain, 0);
      for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
    });
    for (const auto& times : hits) EXPECT_EQ(times.load(), 1);
  }
  EXPECT_THROW(parallel_ranges(1, 0, [](std::int64_t, std::int64_t) {}), Error);
  EXPECT_NO_THROW(parallel_ranges(-1, 1, [](std::int64_t, std::int64_t) { FAIL(); }));
}

TEST(Parallel, TheLowestFailureIsTheOneThatIsThrown) {
  for (const int threads : {1, 4}) {
    const ThreadScope scope(threads);
    for (int repeat = 0; repeat < 20; ++repeat) {
      try {
        parallel_tasks(100, [](std::int64_t task) {
          if (task % 10 == 3) throw std::runtime_error(std::to_string(task));
        });
        FAIL();
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "3");
      }
    }
  }
}

TEST(Parallel, NestedLoopsRunOnTheCallingThread) {
  const ThreadScope scope(4);
  std::atomic<int> runs{0};
  parallel_tasks(8, [&](std::int64_t) { parallel_tasks(8, [&](std::int64_t) { ++runs; }); });
  EXPECT_EQ(runs.load(), 64);
}

std::int64_t sum_in_parallel(std::int64_t count) {
  std::atomic<std::int64_t> sum{0};
  parallel_tasks(count, [&](std::int64_t task) { sum += task; });
  return sum.load();
}

TEST(Parallel, LoopsRunOnTheirThreadWhereTheyShallBeAlone) {
  const ThreadScope scope(4);
  const auto own = std::this_thread::get_id();
  {
    const LoopsAlone alone;
    const LoopsAlone not_wanted(false);
    EXPECT_TRUE(Crew::is_at_work());
    parallel_tasks(100, [&](std::int64_t) { EXPECT_EQ(std::this_thread::get_id(), own); });
  }
  EXPECT_FALSE(Crew::is_at_work());
}

TEST(Parallel, SeveralThreadsMayHaveLoopsAtOnce) {
  const ThreadScope scope(3);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int loop = 0; loop < 500; ++loop) wrong += sum_in_parallel(20) == 190 ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Parallel, LoopsWorkInBothProcessesAfterAFork) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends processes that start threads after a fork";
#endif
  const ThreadScope scope(3);
  ASSERT_EQ(sum_in_parallel(100), 4950);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    bool right = true;
    for (int loop = 0; loop < 100; ++loop) right = right && sum_in_parallel(100) == 4950;
    _exit(right ? 0 : 1);
  }
  EXPECT_EQ(sum_in_parallel(100), 4950);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Parallel, AReductionHasTheSameBitsForAnyNumberOfThreads) {
  const auto sum_of = [](int threads) {
    const ThreadScope scope(threads);
    return parallel_reduce(
        100000, 1000, 0.0f,
        [](std::int64_t begin, std::int64_t end) {
          float sum = 0;
          for (std::int64_t i = begin; i < end; ++i) sum += 1.0f / static_cast<float>(i + 1);
          return sum;
        },
        [](float a, float b) { return a + b; });
  };
  const float expected = sum_of(1);
  EXPECT_NEAR(expected, 12.09f, 0.01f);
  for (const int threads : {2, 3, 4}) EXPECT_EQ(sum_of(threads), expected);
}

TEST(Parallel, AReductionOfNothingIsItsInitialValue) {
  const auto fail = [](std::int64_t, std::int64_t) { return 1; };
  EXPECT_EQ(parallel_reduce(0, 10, 42, fail, std::plus<>()), 42);
}

TEST(Parallel, ExclusiveScanMatchesASequentialOne) {
  for (const std::size_t count : {0u, 1u, 17u, 65536u, 65537u, 200001u}) {
    SCOPED_TRACE(count);
    std::vector<std::int64_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int64_t>(i * i % 97);
    std::vector<std::int64_t> expected(count);
    std::exclusive_scan(values.begin(), values.end(), expected.begin(), std::int64_t{0});
    const std::int64_t total = std::accumulate(values.begin(), values.end(), std::int64_t{0});
    EXPECT_EQ(exclusive_scan(std::span<std::int64_t>(values)), total);
    EXPECT_EQ(values, expected);
  }
}

}  // namespace
}  // namespace tessera
