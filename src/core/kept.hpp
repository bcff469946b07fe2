// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "core/stream_uses.hpp"

namespace tessera {

/// Something on a device that several owners share, such as what a graph keeps there. It was made
/// in one place; whoever uses it from another stream holds it by a `use`, which lets that stream
/// wait until it is made, and its own stream, before it is released, until that one is done.
template <class T>
class Kept {
 public:
  Kept(T value, const Place& place)
      : value_(std::move(value)), place_(place), made_(place), uses_(place) {}

  /// A handle for what works in the order of the stream. When the handle goes, all work that used
  /// it is on that stream, or that stream waits for it.
  static std::shared_ptr<const T> use(std::shared_ptr<const Kept> kept, Stream stream) {
    if (stream.handle == kept->place_.stream.handle) {
      const T* const value = &kept->value_;
      return {std::move(kept), value};
    }
    kept->made_.wait(stream);
    const auto use = std::make_shared<const Use>(std::move(kept), stream);
    return {use, &use->kept->value_};
  }

 private:
  struct Use {
    Use(std::shared_ptr<const Kept> of, Stream by) : kept(std::move(of)), stream(by) {}
    ~Use() { kept->uses_.mark(stream); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    std::shared_ptr<const Kept> kept;
    Stream stream;
  };

  T value_;
  Place place_;
  MadeMark made_;
  mutable StreamUses uses_;  ///< the last member: see there
};

}  // namespace tessera
