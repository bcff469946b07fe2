// SPDX-License-Identifier: Apache-2.0
#include "core/once_map.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera {
namespace {

using testing::ThreadScope;
using Value = OnceMap::Value;

Value number(int value) { return std::make_shared<const int>(value); }
int int_of(const Value& value) { return *std::static_pointer_cast<const int>(value); }

/// Until another thread has come as far.
void wait_for(const std::atomic<bool>& there) {
  while (!there.load()) std::this_thread::yield();
}

TEST(OnceMap, MakesAValueOnceForAllWhoAskAtTheSameTime) {
  OnceMap map;
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const Value value = map.get("a", [&] {
        ++made;
        std::this_thread::yield();
        return number(7);
      });
      EXPECT_EQ(int_of(value), 7);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made.load(), 1);
}

TEST(OnceMap, HoldsNoLockWhileItMakes) {
  OnceMap map;
  std::atomic<bool> b_is_made{false};
  const Value a = map.get("a", [&] {
    // Another thread goes on with the same map while this one is in the middle.
    std::thread other([&] {
      map.get("b", [] { return number(2); });
      b_is_made = true;
    });
    wait_for(b_is_made);
    other.join();
    return number(1);
  });
  EXPECT_EQ(int_of(a), 1);
  EXPECT_EQ(int_of(map.known("b")), 2);
}

TEST(OnceMap, HelpersOfALoopInsideOfAMakeMayAskForAnything) {
  for (const int threads : {1, 2, 16}) {
    const ThreadScope scope(threads);
    OnceMap map, other;
    const Value sum = map.get("sum", [&] {
      std::atomic<int> total{0};
      parallel_tasks(64, [&](std::int64_t task) {
        const std::string key = std::to_string(task % 5);
        OnceMap& asked = task % 2 == 0 ? map : other;
        total += int_of(asked.get(key, [&] {
          parallel_tasks(4, [&](std::int64_t) { map.get("deep", [] { return number(1); }); });
          return number(1);
        }));
      });
      return number(total.load());
    });
    EXPECT_EQ(int_of(sum), 64);
  }
}

TEST(OnceMap, AValueThatNeedsItselfIsAnError) {
  OnceMap map;
  const auto ask = [&] { map.get("a", [&] { return map.get("a", [] { return number(1); }); }); };
  testing::expect_error(ErrorCode::internal, {"'a' and 'a' each need the other first"}, ask);
  EXPECT_EQ(int_of(map.get("a", [] { return number(3); })), 3) << "the failure is forgotten";
}

TEST(OnceMap, ALoopWhoseHelperNeedsWhatTheLoopIsPartOfIsAnError) {
  const ThreadScope scope(2);
  OnceMap map;
  testing::expect_error(ErrorCode::internal, {"each need the other first"}, [&] {
    map.get("a", [&] {
      parallel_tasks(8, [&](std::int64_t) {
        map.get("b", [&] { return map.get("a", [] { return number(1); }); });
      });
      return number(2);
    });
  });
}

TEST(OnceMap, TwoThreadsThatNeedEachOthersValueGetAnErrorInPlaceOfAWait) {
  OnceMap map;
  std::atomic<bool> a_begun{false}, b_begun{false};
  std::atomic<int> errors{0};
  const auto make = [&](const char* own, std::atomic<bool>& begun, const char* needed,
                        const std::atomic<bool>& other_begun) {
    try {
      map.get(own, [&] {
        begun = true;
        wait_for(other_begun);
        return map.get(needed, [] { return number(5); });
      });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::internal);
      ++errors;
    }
  };
  std::thread first([&] { make("a", a_begun, "b", b_begun); });
  std::thread second([&] { make("b", b_begun, "a", a_begun); });
  first.join();
  second.join();
  EXPECT_EQ(errors.load(), 1) << "one fails, and the other makes both";
  EXPECT_EQ(int_of(map.known("a")), 5);
}

TEST(OnceMap, AfterAFailureTheNextOneTries) {
  OnceMap map;
  std::atomic<bool> begun{false}, waits{false};
  std::thread failing([&] {
    EXPECT_THROW(map.get("a",
                         [&]() -> Value {
                           begun = true;
                           wait_for(waits);
                           throw std::runtime_error("no");
                         }),
                 std::runtime_error);
  });
  wait_for(begun);
  waits = true;
  EXPECT_EQ(int_of(map.get("a", [] { return number(9); })), 9);
  failing.join();
}

TEST(OnceMap, WhatIsKnownMeanwhileIsWhatTheMakerReturns) {
  OnceMap map;
  const Value value = map.get("a", [&] {
    map.know("a", number(1));
    return number(2);
  });
  EXPECT_EQ(int_of(value), 1);
  map.know("a", number(3));
  EXPECT_EQ(int_of(map.known("a")), 1) << "what is there stays";
}

TEST(OnceMap, KeepsWeaklyWhatOthersHold) {
  OnceMap map;
  const auto get = [&](int value) {
    return map.get(
        "a", [&] { return number(value); }, Keeping::weakly);
  };
  Value held = get(1);
  EXPECT_EQ(int_of(get(2)), 1);
  held.reset();
  EXPECT_EQ(map.known("a"), nullptr);
  EXPECT_EQ(int_of(get(3)), 3);
}

TEST(OnceMap, ReleasesOutsideOfItsLock) {
  OnceMap map;
  const auto asks_when_it_goes = [&map](const int* number) {
    map.known("other");
    delete number;
  };
  map.know("a", Value(new const int(1), asks_when_it_goes), Keeping::for_users);
  map.release_unused();
  EXPECT_EQ(map.known("a"), nullptr);
}

}  // namespace
}  // namespace tessera
