// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tessera/core/parallel.hpp"

namespace tessera {

/// How long a value stays in an `OnceMap`: as long as the map, until `release_unused` finds that
/// the map alone holds it, or as long as somebody else holds it.
enum class Keeping { for_good, for_users, weakly };

/// Values that are made once per key and shared. Any number of threads may ask at once, also from
/// inside of a parallel loop and while they make another value: the lock covers look-ups alone, and
/// a thread that asks for a value in the making waits for that value and for nothing else. Where
/// this could never end, because the value in the making needs what the asking thread is making, it
/// is an error.
class OnceMap {
 public:
  using Value = std::shared_ptr<const void>;

  OnceMap() = default;
  OnceMap(const OnceMap&) = delete;
  OnceMap& operator=(const OnceMap&) = delete;

  /// The value of a key; `make` is called for the first who asks. If it throws, the next who asks
  /// or waits tries again.
  Value get(const std::string& key, FunctionRef<Value()> make, Keeping keeping = Keeping::for_good);
  /// The value if it is there, else null.
  Value known(const std::string& key) const;
  /// Sets a value that was found beside something else. One that is there already stays. Never
  /// waits: if the value is being made, the maker takes this one.
  void know(const std::string& key, Value value, Keeping keeping = Keeping::for_good);
  /// Lets go of values that are kept for their users and have none.
  void release_unused();

 private:
  class Making;

  struct Entry {
    Value held;
    std::weak_ptr<const void> watched;  ///< of a value that is kept weakly
    bool for_users = false;
    std::shared_ptr<Making> making;  ///< null while no thread makes it

    Value value() const { return held ? held : watched.lock(); }
    void set(Value value, Keeping keeping);
  };

  Value made(const std::string& key, FunctionRef<Value()> make, Keeping keeping,
             const std::shared_ptr<Making>& making);

  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace tessera
