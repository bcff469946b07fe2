// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <tuple>

#include "dense.hpp"
#include "structure.hpp"

/// Structures by the tensors that describe them. An entry holds the memory of its tensors, so a
/// pointer that is found here is the same memory, and not another's that came to lie there later;
/// torch's version numbers tell whether it was written to since. Memory that torch borrowed, of a
/// NumPy array or a buffer, may be borrowed once more after it was written to, by a tensor whose
/// versions begin anew: on a CPU, where that is common, such a tensor is another graph.
namespace tessera::torch_ops {
namespace {

using Identity = std::tuple<const void*, std::int64_t, std::int64_t, std::int64_t, int>;

Identity identity_of(const Tensor& tensor) {
  return {tensor.const_data_ptr(), tensor.size(tensor.dim() - 1),
          tensor.dim() == 2 ? tensor.stride(0) : 0, tensor.stride(tensor.dim() - 1),
          static_cast<int>(tensor.scalar_type())};
}

struct Key {
  Identity index;
  Identity offsets;
  std::int64_t targets;
  std::int64_t sources;
  Layout layout;
  Loops loops;

  explicit Key(const GraphArguments& arguments)
      : index(identity_of(arguments.index)),
        offsets(arguments.offsets ? identity_of(*arguments.offsets) : Identity{}),
        targets(arguments.targets),
        sources(arguments.sources),
        layout(arguments.layout),
        loops(arguments.loops) {}
  friend bool operator==(const Key&, const Key&) = default;
};

struct Versions {
  std::int64_t index;
  std::int64_t offsets;

  explicit Versions(const GraphArguments& arguments)
      : index(version_of(arguments.index)),
        offsets(arguments.offsets ? version_of(*arguments.offsets) : 0) {}
  friend bool operator==(const Versions&, const Versions&) = default;
};

struct Entry {
  Key key;
  Versions versions;
  std::shared_ptr<Structure> structure;

  bool serves(const GraphArguments& arguments) const {
    const GraphArguments& own = structure->arguments();
    if (own.index.is_cpu() &&
        !(is_same_memory(own.index, arguments.index) &&
          (!own.offsets || is_same_memory(*own.offsets, *arguments.offsets)))) {
      return false;
    }
    return versions == Versions(arguments);
  }
};

class Cache {
 public:
  std::shared_ptr<Structure> find(const GraphArguments& arguments) {
    const Key key(arguments);
    {
      const std::scoped_lock lock(mutex_);
      for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        if (!(entry->key == key)) continue;
        if (entry->serves(arguments)) {
          if (entry != entries_.begin()) entries_.splice(entries_.begin(), entries_, entry);
          return entries_.front().structure;
        }
        if (entry->structure->pinned()) continue;
        entries_.erase(entry);
        break;
      }
    }
    // Nobody counts changes of tensors made in inference mode: such a graph is built for each use.
    // Memory that an entry holds is none of theirs.
    if (is_inference(arguments.index) || (arguments.offsets && is_inference(*arguments.offsets))) {
      return std::make_shared<Structure>(arguments);
    }
    const Versions versions(arguments);
    const std::scoped_lock lock(mutex_);
    auto structure = std::make_shared<Structure>(arguments);
    entries_.push_front({key, versions, structure});
    shrink();
    return structure;
  }

  void limit(std::int64_t entries, std::int64_t bytes) {
    const std::scoped_lock lock(mutex_);
    most_entries_ = entries;
    most_bytes_ = bytes;
    shrink();
  }

  void clear() {
    const std::scoped_lock lock(mutex_);
    entries_.clear();
  }

 private:
  /// Drops the entries that were not used for longest, but never the newest.
  void shrink() {
    std::int64_t bytes = 0;
    std::int64_t count = 0;
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const bool stays =
          count == 0 || entry->structure->pinned() ||
          (count < most_entries_ && bytes + entry->structure->bytes() <= most_bytes_);
      if (!stays) {
        entry = entries_.erase(entry);
        continue;
      }
      bytes += entry->structure->bytes();
      ++count;
      ++entry;
    }
  }

  std::mutex mutex_;
  std::list<Entry> entries_;
  std::int64_t most_entries_ = 64;
  std::int64_t most_bytes_ = std::int64_t{8} << 30;
};

/// Never destroyed: torch's memory may be gone by the time that static objects go.
Cache& cache() {
  static Cache* const instance = new Cache;
  return *instance;
}

}  // namespace

std::shared_ptr<Structure> structure_of(const GraphArguments& arguments) {
  auto structure = cache().find(arguments);
  const Place place = place_of(arguments.index);
  structure->used_at(place);
  if (!structure->pinned() && is_capturing(place)) structure->pin();
  return structure;
}

void set_cache_limits(std::int64_t entries, std::int64_t bytes) { cache().limit(entries, bytes); }
void clear_cache() {
  cache().clear();
  release_dense_memory();
}

}  // namespace tessera::torch_ops
