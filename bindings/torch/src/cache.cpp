// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "dense.hpp"
#include "structure.hpp"

/// Structures by the tensors that describe them. An entry holds the memory of its tensors, so a
/// pointer that is found here is the same memory, and not another's that came to lie there later;
/// torch's version numbers tell whether it was written to since. Memory that torch borrowed, of a
/// NumPy array or a buffer, may be borrowed once more after it was written to, by a tensor whose
/// versions begin anew: on a CPU, where that is common, such a tensor is another graph.
///
/// An entry must not outlive the caller's tensors. Python watches those (tessera/_cache.py), and
/// calls `forget_graphs` when the last one with some memory goes.
///
/// The lock covers look-ups alone. Structures are built, and given back, outside of it: both may
/// end Python objects, whose watchers call `forget_graphs`.
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

  const void* memory() const { return std::get<0>(index); }
};

struct Versions {
  std::int64_t index;
  std::int64_t offsets;

  explicit Versions(const GraphArguments& arguments)
      : index(version_of(arguments.index)),
        offsets(arguments.offsets ? version_of(*arguments.offsets) : 0) {}
  friend bool operator==(const Versions&, const Versions&) = default;
};

/// What a structure takes with its transpose and the plans of a few layers: an estimate.
std::int64_t estimated_bytes(const GraphArguments& arguments) {
  constexpr std::int64_t for_edge = 48, for_vertex = 32;
  const auto bytes_of = [](const Tensor& tensor) {
    return tensor.numel() * (tensor.scalar_type() == ScalarType::Int ? 4 : 8);
  };
  return bytes_of(arguments.index) + (arguments.offsets ? bytes_of(*arguments.offsets) : 0) +
         for_edge * arguments.index.size(arguments.index.dim() - 1) +
         for_vertex * (arguments.targets + arguments.sources);
}

using Future = std::shared_future<std::shared_ptr<Structure>>;

struct Entry {
  std::int64_t number;
  Key key;
  Versions versions;
  GraphArguments arguments;  ///< its own
  Future structure;          ///< ready, or being built
  std::int64_t bytes;

  bool serves(const GraphArguments& given) const {
    if (given.index.is_cpu() &&
        !(is_same_memory(arguments.index, given.index) &&
          (!given.offsets || is_same_memory(*arguments.offsets, *given.offsets)))) {
      return false;
    }
    return versions == Versions(given);
  }
  int device() const { return arguments.index.get_device_index(); }
  bool pinned() const {
    const bool ready = structure.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    return ready && structure.get()->pinned();
  }
};

/// Asks Python to call `forget_graphs` when the last of the caller's tensors with this memory goes.
void watch(const Tensor& index) {
  std::array<StableIValue, 1> stack{torch::stable::detail::from(index)};
  TORCH_ERROR_CODE_CHECK(
      torch_call_dispatcher("tessera::watch", "", stack.data(), TORCH_ABI_VERSION));
}

class Cache {
 public:
  std::shared_ptr<Structure> find(const GraphArguments& given) {
    const Key key(given);
    if (const Future known = look_up(key, given); known.valid()) return known.get();
    // Nobody counts changes of tensors made in inference mode: such a graph is built for each use.
    // Memory that an entry holds is none of theirs.
    if (is_inference(given.index) || (given.offsets && is_inference(*given.offsets))) {
      return std::make_shared<Structure>(given.own());
    }
    std::promise<std::shared_ptr<Structure>> promise;
    Entry entry{
        0, key, Versions(given), given.own(), promise.get_future().share(), estimated_bytes(given)};
    if (const Future known = insert(entry, given); known.valid()) return known.get();
    try {
      promise.set_value(std::make_shared<Structure>(entry.arguments));
    } catch (...) {
      erase(entry.number);
      promise.set_exception(std::current_exception());
      throw;
    }
    watch(given.index);
    shrink();
    return entry.structure.get();
  }

  void limit(std::optional<std::int64_t> entries, std::optional<std::int64_t> bytes) {
    {
      const std::scoped_lock lock(mutex_);
      most_entries_ = entries;
      most_bytes_ = bytes;
    }
    shrink();
  }

  void forget(const void* memory) {
    {
      Entries dropped;
      const std::scoped_lock lock(mutex_);
      const auto [begin, end] = by_memory_.equal_range(memory);
      for (auto place = begin; place != end;) {
        const auto entry = (place++)->second;
        if (!entry->pinned()) drop(entry, dropped);
      }
    }
    if (is_far_below_peak()) release_free_memory();
  }

  void clear() {
    Entries dropped;
    const std::scoped_lock lock(mutex_);
    dropped.swap(entries_);
    by_memory_.clear();
    bytes_.clear();
  }

  CacheUse use() {
    const std::scoped_lock lock(mutex_);
    return {std::ssize(entries_), all_bytes()};
  }

 private:
  using Entries = std::list<Entry>;  ///< the one that was used last comes first

  /// The structure of these tensors, ready or being built by another thread; none where there is
  /// no such entry. One whose tensors were changed, or are others, is dropped.
  Future find_entry(const Key& key, const GraphArguments& given, Entries& dropped) {
    const auto [begin, end] = by_memory_.equal_range(key.memory());
    for (auto place = begin; place != end; ++place) {
      const auto entry = place->second;
      if (!(entry->key == key)) continue;
      if (entry->serves(given)) {
        entries_.splice(entries_.begin(), entries_, entry);
        return entry->structure;
      }
      if (entry->pinned()) continue;
      drop(entry, dropped);
      break;
    }
    return {};
  }

  Future look_up(const Key& key, const GraphArguments& given) {
    Entries dropped;
    const std::scoped_lock lock(mutex_);
    return find_entry(key, given, dropped);
  }

  /// Unless another thread was faster, whose structure is returned then.
  Future insert(Entry& entry, const GraphArguments& given) {
    Entries dropped;
    const std::scoped_lock lock(mutex_);
    if (Future known = find_entry(entry.key, given, dropped); known.valid()) return known;
    entry.number = ++last_number_;
    entries_.push_front(entry);
    by_memory_.emplace(entry.key.memory(), entries_.begin());
    bytes_[entry.device()] += entry.bytes;
    peak_ = std::max(peak_, all_bytes());
    return {};
  }

  void erase(std::int64_t number) {
    Entries dropped;
    const std::scoped_lock lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->number != number) continue;
      drop(entry, dropped);
      return;
    }
  }

  /// Moves an entry to those that go when the lock is released.
  void drop(Entries::iterator entry, Entries& dropped) {
    const auto [begin, end] = by_memory_.equal_range(entry->key.memory());
    for (auto place = begin; place != end; ++place) {
      if (place->second != entry) continue;
      by_memory_.erase(place);
      break;
    }
    bytes_[entry->device()] -= entry->bytes;
    dropped.splice(dropped.end(), entries_, entry);
  }

  std::int64_t all_bytes() const {
    std::int64_t sum = 0;
    for (const auto& [device, bytes] : bytes_) sum += bytes;
    return sum;
  }

  /// Whether much was given back that an allocator keeps for the next request. Then the peak begins
  /// anew, so that this is rarely so.
  bool is_far_below_peak() {
    constexpr std::int64_t much = std::int64_t{256} << 20;
    const std::scoped_lock lock(mutex_);
    const std::int64_t now = all_bytes();
    const bool far = peak_ - now > std::max(peak_ / 2, much);
    if (far) peak_ = now;
    return far;
  }

  std::int64_t most_bytes(int device) {
    if (most_bytes_) return *most_bytes_;
    const auto [known, is_new] = memory_.try_emplace(device, 0);
    if (is_new) known->second = memory_of_device(device);
    return known->second / default_part;
  }

  bool is_over(int device) {
    return bytes_[device] > most_bytes(device) ||
           (most_entries_ && std::ssize(entries_) > *most_entries_);
  }

  /// Drops the entries that were not used for longest, but never the newest.
  void shrink() {
    Entries dropped;
    const std::scoped_lock lock(mutex_);
    for (const auto& [device, bytes] : bytes_) {
      for (auto entry = entries_.end(); is_over(device) && entry != entries_.begin();) {
        const auto last = --entry;
        if (last == entries_.begin()) break;
        if (last->device() != device || last->pinned()) continue;
        ++entry;
        drop(last, dropped);
      }
    }
  }

  static constexpr std::int64_t default_part =
      4;  ///< of a device's memory, as tessera/_cache.py says

  std::mutex mutex_;
  Entries entries_;
  std::unordered_multimap<const void*, Entries::iterator> by_memory_;
  std::map<int, std::int64_t> bytes_;   ///< by device
  std::map<int, std::int64_t> memory_;  ///< of devices
  std::int64_t peak_ = 0;               ///< of all bytes
  std::int64_t last_number_ = 0;
  std::optional<std::int64_t> most_entries_;
  std::optional<std::int64_t> most_bytes_;
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

void set_cache_limits(std::optional<std::int64_t> entries, std::optional<std::int64_t> bytes) {
  cache().limit(entries, bytes);
}
void forget_graphs(const void* memory) { cache().forget(memory); }
CacheUse cache_use() { return cache().use(); }
void clear_cache() {
  cache().clear();
  release_dense_memory();
  release_free_memory();
}

}  // namespace tessera::torch_ops
