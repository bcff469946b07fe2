// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "core/readiness.hpp"
#include "core/stream_uses.hpp"
#include "tessera/core/memory.hpp"

/// The memory that a run needs for itself, and whose it is: the plan's own, or lent by the caller.
namespace tessera::ops {

/// Where runs find their workspace.
struct WorkspaceView {
  unsigned* counters = nullptr;  ///< 0 when a run begins, and 0 again when it has ended
  std::byte* bytes = nullptr;    ///< hold anything
};

/// An array in a workspace.
template <class T>
struct WorkspacePart {
  std::int64_t offset = 0;
  std::int64_t size = 0;

  T* in(const WorkspaceView& view) const noexcept {
    return size == 0 ? nullptr : reinterpret_cast<T*>(view.bytes + offset);
  }
};

/// The workspace of a kernel beside that of another.
struct WorkspaceShare {
  std::int64_t first_counter = 0;
  WorkspacePart<std::byte> bytes;

  WorkspaceView in(const WorkspaceView& view) const noexcept {
    return {view.counters + first_counter, bytes.in(view)};
  }
};

/// How much memory a run needs for itself. Kernels that run one after another share it: each leaves
/// the counters at 0, and the bytes hold nothing between two of them.
class WorkspaceNeed {
 public:
  static constexpr std::int64_t alignment = 256;

  template <class T>
  WorkspacePart<T> add(std::int64_t size) {
    const WorkspacePart<T> part{bytes_, size};
    bytes_ += rounded(static_cast<std::int64_t>(checked_bytes(size, sizeof(T))));
    return part;
  }
  void add_counters(std::int64_t count) { counters_ += count; }
  /// Room for other kernels that run while the parts added before hold something.
  WorkspacePart<std::byte> add_for(std::initializer_list<WorkspaceNeed> others) {
    std::int64_t bytes = 0;
    for (const WorkspaceNeed& other : others) {
      counters_ = std::max(counters_, other.counters_);
      bytes = std::max(bytes, other.bytes_);
    }
    return add<std::byte>(bytes);
  }
  /// Room for another kernel that runs at the same time.
  WorkspaceShare add_beside(const WorkspaceNeed& other) {
    const std::int64_t first_counter = counters_;
    counters_ += other.counters_;
    return {first_counter, add<std::byte>(other.bytes_)};
  }
  /// Room for this, or for the other in its place.
  void cover(const WorkspaceNeed& other) {
    counters_ = std::max(counters_, other.counters_);
    bytes_ = std::max(bytes_, other.bytes_);
  }

  std::int64_t counter_bytes() const noexcept {
    return rounded(counters_ * static_cast<std::int64_t>(sizeof(unsigned)));
  }
  std::int64_t total_bytes() const noexcept { return counter_bytes() + bytes_; }

  WorkspaceView view(void* memory) const noexcept {
    auto* const bytes = static_cast<std::byte*>(memory);
    return {reinterpret_cast<unsigned*>(bytes), bytes + counter_bytes()};
  }

 private:
  static std::int64_t rounded(std::int64_t bytes) noexcept {
    return (bytes + alignment - 1) / alignment * alignment;
  }

  std::int64_t counters_ = 0;
  std::int64_t bytes_ = 0;
};

/// The workspace of another kernel within one's own.
inline WorkspaceView part_for(const WorkspacePart<std::byte>& part, const WorkspaceView& view) {
  return {view.counters, part.in(view)};
}

/// The workspace of a plan, and the streams that its runs are on. The last member of the plan's
/// state: when it is made, the plan is complete as soon as the plan's stream has come so far, which
/// runs on other streams wait for. When it goes, the plan's stream waits for all runs, and the
/// memory of the other members is released after that.
class PlanWorkspace {
 public:
  /// Queues the clearing of the counters on the place's stream. `owned`: whether the plan has one
  /// of its own, or every run brings one.
  PlanWorkspace(const WorkspaceNeed& need, const Place& place, bool owned = true);

  std::int64_t bytes() const noexcept { return need_.total_bytes(); }

 private:
  friend class WorkspaceUse;

  WorkspaceNeed need_;
  Place place_;
  Buffer<std::byte> own_;
  mutable std::atomic<bool> taken_{false};  ///< by a run that no other may overlap
  Buffer<std::byte> last_;  ///< what the last work of planning clears, where there is nothing else
  Readiness ready_;
  mutable StreamUses uses_;
};

/// One run's use of a workspace, from before its first launch to behind its last.
class WorkspaceUse {
 public:
  /// Throws `invalid_argument` where the lent memory is too small or not on a boundary of 256
  /// bytes, where there is none, and where another thread is in the middle of a run that uses what
  /// this one would: the plan's own workspace, or on the CPU anything, as kernels keep memory
  /// there.
  WorkspaceUse(const PlanWorkspace& workspace, const Workspace& lent, Stream stream);
  ~WorkspaceUse() {
    workspace_.uses_.mark(stream_);
    if (alone_) workspace_.taken_.store(false, std::memory_order_release);
  }
  WorkspaceUse(const WorkspaceUse&) = delete;
  WorkspaceUse& operator=(const WorkspaceUse&) = delete;

  const WorkspaceView& view() const noexcept { return view_; }

 private:
  void take();

  const PlanWorkspace& workspace_;
  Stream stream_;
  bool alone_;
  WorkspaceView view_;
};

/// The workspace of kernels that are tried out one after another.
class TrialWorkspace {
 public:
  TrialWorkspace() = default;
  explicit TrialWorkspace(const Place& place) : place_(place) {}

  /// Makes room for a kernel; its runs come after the work on the place's stream.
  void prepare(const WorkspaceNeed& need);
  const WorkspaceView& view() const noexcept { return view_; }

 private:
  Place place_;
  Buffer<std::byte> memory_;
  WorkspaceView view_;
};

}  // namespace tessera::ops
