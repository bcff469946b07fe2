// SPDX-License-Identifier: Apache-2.0
#include "core/once_map.hpp"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/loop_origin.hpp"
#include "tessera/core/error.hpp"

namespace tessera {

/// A value in the making. Those that a thread makes one inside of the other form a chain, which the
/// helpers of its parallel loops inherit, since it waits for them.
class OnceMap::Making {
 public:
  explicit Making(std::string key)
      : key_(std::move(key)), within_(static_cast<const Making*>(loop_origin())) {}

  /// Ends the wait of all others. Null: it could not be made.
  void finish(Value value);
  /// What `finish` was given.
  Value wait() const;

 private:
  struct Wait {
    const Making* from;  ///< the innermost value that the waiting thread is making
    const Making* target;
  };

  /// All waits of this process.
  struct Waits {
    std::mutex mutex;
    std::condition_variable ended;
    std::vector<Wait> list;

    static Waits& all() {
      static Waits* const waits = new Waits;  // helpers may outlive static objects
      return *waits;
    }
  };

  bool is_within(const Making* other) const {
    const Making* making = this;
    while (making != nullptr && making != other) making = making->within_;
    return making != nullptr;
  }
  bool needs_one_around(const Making* asking, const Waits& waits) const;

  std::string key_;
  const Making* within_;
  bool finished_ = false;  ///< under the lock of the waits, as is the value
  Value value_;
};

void OnceMap::Making::finish(Value value) {
  Waits& waits = Waits::all();
  {
    const std::scoped_lock lock(waits.mutex);
    value_ = std::move(value);
    finished_ = true;
  }
  waits.ended.notify_all();
}

/// Whether this value waits, directly or through others, for one that `asking` is made within.
bool OnceMap::Making::needs_one_around(const Making* asking, const Waits& waits) const {
  std::vector<const Making*> needed = {this};
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (asking->is_within(needed[i])) return true;
    for (const Wait& wait : waits.list) {
      const bool is_new = std::find(needed.begin(), needed.end(), wait.target) == needed.end();
      if (is_new && wait.from->is_within(needed[i])) needed.push_back(wait.target);
    }
  }
  return false;
}

OnceMap::Value OnceMap::Making::wait() const {
  const auto* const asking = static_cast<const Making*>(loop_origin());
  Waits& waits = Waits::all();
  std::unique_lock lock(waits.mutex);
  if (finished_) return value_;
  // A thread that makes nothing keeps none waiting.
  if (asking == nullptr) {
    waits.ended.wait(lock, [this] { return finished_; });
    return value_;
  }
  if (needs_one_around(asking, waits)) {
    throw Error(ErrorCode::internal,
                fmt::format("'{}' and '{}' each need the other first", asking->key_, key_),
                "deriving from a graph");
  }
  waits.list.push_back({asking, this});
  waits.ended.wait(lock, [this] { return finished_; });
  std::erase_if(waits.list,
                [&](const Wait& wait) { return wait.from == asking && wait.target == this; });
  return value_;
}

void OnceMap::Entry::set(Value value, Keeping keeping) {
  if (keeping == Keeping::weakly) {
    watched = value;
  } else {
    held = std::move(value);
    for_users = keeping == Keeping::for_users;
  }
}

OnceMap::Value OnceMap::get(const std::string& key, FunctionRef<Value()> make, Keeping keeping) {
  while (true) {
    std::shared_ptr<Making> others;
    std::shared_ptr<Making> own;
    {
      const std::scoped_lock lock(mutex_);
      Entry& entry = entries_[key];
      if (Value value = entry.value()) return value;
      if (entry.making == nullptr) entry.making = own = std::make_shared<Making>(key);
      others = entry.making;
    }
    if (own != nullptr) return made(key, make, keeping, own);
    if (Value value = others->wait()) return value;
  }
}

OnceMap::Value OnceMap::made(const std::string& key, FunctionRef<Value()> make, Keeping keeping,
                             const std::shared_ptr<Making>& making) {
  Value value;
  const auto end = [&] {
    {
      const std::scoped_lock lock(mutex_);
      Entry& entry = entries_[key];
      if (Value known = entry.value()) {
        value = std::move(known);
      } else if (value != nullptr) {
        entry.set(value, keeping);
      }
      entry.making = nullptr;
    }
    making->finish(value);
  };
  try {
    const LoopOrigin origin(making.get());
    value = make();
  } catch (...) {
    end();
    throw;
  }
  end();
  return value;
}

OnceMap::Value OnceMap::known(const std::string& key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.value();
}

void OnceMap::know(const std::string& key, Value value, Keeping keeping) {
  const std::scoped_lock lock(mutex_);
  Entry& entry = entries_[key];
  if (entry.value() == nullptr) entry.set(std::move(value), keeping);
}

void OnceMap::release_unused() {
  // New users come through the lock alone, so one that is the last stays the last. Values are
  // released outside of it; one that is let go may have used another.
  std::vector<Value> released;
  do {
    released.clear();
    const std::scoped_lock lock(mutex_);
    for (auto each = entries_.begin(); each != entries_.end();) {
      Entry& entry = each->second;
      const bool unused = entry.for_users && entry.making == nullptr && entry.held.use_count() == 1;
      if (unused) released.push_back(std::move(entry.held));
      each = unused ? entries_.erase(each) : std::next(each);
    }
  } while (!released.empty());
}

}  // namespace tessera
