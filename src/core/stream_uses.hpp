// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "tessera/core/memory.hpp"

namespace tessera {

/// Keeps memory of a place from going to others while streams beside the place's own still use it.
/// Each of them is marked behind its last use; when this object goes, the place's stream waits for
/// the marks, and whatever is released on it afterwards is released in order. So it is the last
/// member of what owns the memory: members go in the reverse order.
///
/// Nothing happens on the CPU, nor for work on the place's own stream.
class StreamUses {
 public:
  explicit StreamUses(const Place& place) : place_(place) {}
  ~StreamUses();
  StreamUses(const StreamUses&) = delete;
  StreamUses& operator=(const StreamUses&) = delete;

  /// What has been queued on the stream so far uses the memory. Captured work is not marked:
  /// whoever captures keeps the memory as long as the captured work. Where no mark can be made, it
  /// waits for the stream instead.
  void mark(Stream stream) noexcept;

 private:
  struct Mark {
    void* stream;
    void* event;
  };

  void* event_of(Stream stream);

  Place place_;
  std::mutex mutex_;
  std::vector<Mark> marks_;  ///< one for each stream
};

/// Where a stream stood when something was made: streams that use it wait for that first.
class MadeMark {
 public:
  /// All work of making it has been queued.
  explicit MadeMark(const Place& place);
  ~MadeMark();
  MadeMark(const MadeMark&) = delete;
  MadeMark& operator=(const MadeMark&) = delete;

  void wait(Stream stream) const;

 private:
  Place place_;
  void* event_ = nullptr;
};

}  // namespace tessera
