// SPDX-License-Identifier: Apache-2.0
#include "core/meanwhile.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <memory>
#include <thread>

namespace tessera {
namespace {

/// While one of these lives, no thread can be made: its stack would be larger than all addresses.
class NoFurtherThread {
 public:
  NoFurtherThread() {
    pthread_attr_init(&before_);
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 50);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoFurtherThread() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoFurtherThread(const NoFurtherThread&) = delete;
  NoFurtherThread& operator=(const NoFurtherThread&) = delete;

 private:
  pthread_attr_t before_;
};

TEST(Meanwhile, WorkHasAThreadOfItsOwn) {
  auto there = meanwhile([] { return std::this_thread::get_id(); });
  EXPECT_NE(there.get(), std::this_thread::get_id());
}

TEST(Meanwhile, WithoutAFurtherThreadTheWorkIsDoneWhenItIsAskedFor) {
  const NoFurtherThread none;
  EXPECT_THROW(std::thread([] {}), std::system_error);
  auto here = meanwhile([what = std::make_unique<int>(7)] {
    EXPECT_EQ(*what, 7);
    return std::this_thread::get_id();
  });
  EXPECT_EQ(here.get(), std::this_thread::get_id());
}

}  // namespace
}  // namespace tessera
