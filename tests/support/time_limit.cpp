// SPDX-License-Identifier: Apache-2.0
// Linked into every test program: a test that takes longer than its limit prints the stack of every
// thread and ends the program, where it would hang otherwise. TESSERA_TEST_SECONDS sets the limit.
#include <cxxabi.h>
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace {

constexpr int default_seconds = 300;
constexpr int stack_signal = SIGUSR2;

/// The stack of the thread that was asked last, written by its signal handler.
struct AskedStack {
  std::array<void*, 64> frames{};
  std::atomic<int> depth{0};
};
AskedStack asked;

void write_stack_down(int) {
  asked.depth.store(backtrace(asked.frames.data(), static_cast<int>(asked.frames.size())));
}

std::string name_of(void* frame) {
  Dl_info info{};
  if (dladdr(frame, &info) == 0 || info.dli_fname == nullptr) return "?";
  if (info.dli_sname == nullptr) {  // as addr2line takes it
    std::array<char, 32> offset{};
    std::snprintf(offset.data(), offset.size(), " +%#tx",
                  static_cast<char*>(frame) - static_cast<char*>(info.dli_fbase));
    return info.dli_fname + std::string(offset.data());
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), &std::free);
  return plain ? plain.get() : info.dli_sname;
}

void print_stack_of(pid_t thread) {
  asked.depth.store(0);
  if (syscall(SYS_tgkill, getpid(), thread, stack_signal) != 0) return;
  for (int looks = 0; looks < 100 && asked.depth.load() == 0; ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::fprintf(stderr, "thread %d:\n", thread);
  if (asked.depth.load() == 0) std::fprintf(stderr, "  does not answer\n");
  for (int i = 0; i < asked.depth.load(); ++i) {
    void* const frame = asked.frames[static_cast<std::size_t>(i)];
    std::fprintf(stderr, "  %p %s\n", frame, name_of(frame).c_str());
  }
}

void print_all_stacks() {
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return;
  const auto own = static_cast<pid_t>(syscall(SYS_gettid));
  while (const dirent* const task = readdir(tasks)) {
    const pid_t thread = std::atoi(task->d_name);
    if (thread > 0 && thread != own) print_stack_of(thread);
  }
  closedir(tasks);
}

class TimeLimit : public testing::EmptyTestEventListener {
 public:
  explicit TimeLimit(int seconds) : limit_(seconds) {
    struct sigaction action {};
    action.sa_handler = write_stack_down;
    action.sa_flags = SA_RESTART;
    sigaction(stack_signal, &action, nullptr);
    backtrace(asked.frames.data(), 1);  // loads what it needs, which a handler must not
  }
  ~TimeLimit() override {
    if (!thread_.joinable()) return;
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void OnTestStart(const testing::TestInfo& test) override {
    {
      const std::scoped_lock lock(mutex_);
      name_ = std::string(test.test_suite_name()) + "." + test.name();
      deadline_ = std::chrono::steady_clock::now() + limit_;
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { watch(); });
  }
  void OnTestEnd(const testing::TestInfo&) override {
    const std::scoped_lock lock(mutex_);
    deadline_ = no_deadline;
  }

 private:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr Time no_deadline = Time::max();

  /// Looks once a second: a test that is on its way costs nothing more.
  void watch() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      if (std::chrono::steady_clock::now() >= deadline_) {
        std::fprintf(stderr, "%s is not done after %lld s; its threads are at\n", name_.c_str(),
                     static_cast<long long>(limit_.count()));
        print_all_stacks();
        std::_Exit(1);
      }
      changed_.wait_for(lock, std::chrono::seconds(1));
    }
  }

  std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string name_;
  Time deadline_ = no_deadline;
  bool ends_ = false;
  std::thread thread_;
};

int limit_seconds() {
  const char* const given = std::getenv("TESSERA_TEST_SECONDS");
  return given == nullptr ? default_seconds : std::atoi(given);
}

// The framework owns it from here on.
[[maybe_unused]] const bool registered = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new TimeLimit(limit_seconds()));
  return true;
}();

}  // namespace
