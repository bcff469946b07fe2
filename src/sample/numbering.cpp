// SPDX-License-Identifier: Apache-2.0
#include "sample/numbering.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::sample {
namespace {

constexpr std::size_t looks_ahead = 16;
constexpr std::int64_t keys_per_task = 8192;

}  // namespace

void require_room(std::int64_t keys) {
  if (keys <= std::numeric_limits<VertexId>::max()) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("{} vertices or edges in one hop of a batch", keys), "neighbours",
              "draw for fewer seeds at once, or with smaller fan-outs");
}

template <class Key>
void Numbering<Key>::resize(std::int64_t expected) {
  const auto wanted =
      std::bit_ceil(static_cast<std::size_t>(std::max<std::int64_t>(2 * expected, 64)));
  if (wanted <= slots_.size()) return;
  const std::vector<Slot> old =
      std::exchange(slots_, std::vector<Slot>(wanted, Slot{no_key<Key>, no_number}));
  shift_ = 64 - std::countr_zero(wanted);
  for (const Slot& slot : old) {
    if (slot.key != no_key<Key>) slots_[place_of(slot.key)] = slot;
  }
}

template <class Key>
void Numbering<Key>::start(std::span<const Key> seeds) {
  require_room(std::ssize(seeds));
  resize(std::ssize(seeds));
  for (const Key seed : seeds) {
    Slot& slot = slots_[place_of(seed)];
    if (slot.key == no_key<Key>) slot = {seed, static_cast<std::uint32_t>(count_)};
    ++count_;
  }
}

template <class Key>
void Numbering<Key>::number(std::span<const Key> keys, std::span<VertexId> numbers,
                            std::vector<Key>& appeared) {
  require_room(std::ssize(keys));
  if (num_threads() > 1 && std::ssize(keys) > 2 * keys_per_task) {
    number_together(keys, numbers, appeared);
  } else {
    number_in_order(keys, numbers, appeared);
  }
}

template <class Key>
void Numbering<Key>::number_in_order(std::span<const Key> keys, std::span<VertexId> numbers,
                                     std::vector<Key>& appeared) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i + looks_ahead < keys.size()) {
      __builtin_prefetch(&slots_[home_of(keys[i + looks_ahead])], 1);
    }
    Slot& slot = slots_[place_of(keys[i])];
    if (slot.key != no_key<Key>) {
      numbers[i] = static_cast<VertexId>(slot.number);
      continue;
    }
    require_room(std::int64_t{count_} + 1);
    slot = {keys[i], static_cast<std::uint32_t>(count_)};
    numbers[i] = count_++;
    appeared.push_back(keys[i]);
    if (2 * static_cast<std::size_t>(count_) > slots_.size()) resize(2 * std::int64_t{count_});
  }
}

template <class Key>
std::uint32_t Numbering<Key>::claim(Key key, std::uint32_t number) noexcept {
  std::size_t place = home_of(key);
  for (;; place = (place + 1) & (slots_.size() - 1)) {
    const std::atomic_ref<Key> there(slots_[place].key);
    Key found = there.load(std::memory_order_relaxed);
    if (found == no_key<Key> &&
        there.compare_exchange_strong(found, key, std::memory_order_relaxed)) {
      found = key;
    }
    if (found == key) break;
  }
  const std::atomic_ref<std::uint32_t> known(slots_[place].number);
  std::uint32_t before = known.load(std::memory_order_relaxed);
  while (number < before &&
         !known.compare_exchange_weak(before, number, std::memory_order_relaxed)) {
  }
  return static_cast<std::uint32_t>(place);
}

/// All threads enter their keys, of which each keeps the first place where it appears. Those places
/// in their order are the new numbers.
template <class Key>
void Numbering<Key>::number_together(std::span<const Key> keys, std::span<VertexId> numbers,
                                     std::vector<Key>& appeared) {
  const std::int64_t size = std::ssize(keys);
  resize(count_ + size);
  std::vector<std::uint32_t> places(keys.size());
  parallel_for(size, keys_per_task, [&](std::int64_t i) {
    const auto k = static_cast<std::size_t>(i);
    if (k + looks_ahead < keys.size()) {
      __builtin_prefetch(&slots_[home_of(keys[k + looks_ahead])], 1);
    }
    places[k] = claim(keys[k], provisional_number + static_cast<std::uint32_t>(i));
  });
  const auto known = [&](std::int64_t i) {
    return std::atomic_ref(slots_[places[static_cast<std::size_t>(i)]].number);
  };
  const auto is_first = [&](std::int64_t i) {
    return known(i).load(std::memory_order_relaxed) ==
           provisional_number + static_cast<std::uint32_t>(i);
  };
  std::vector<std::int64_t> firsts(static_cast<std::size_t>((size - 1) / keys_per_task) + 1);
  parallel_ranges(size, keys_per_task, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t& count = firsts[static_cast<std::size_t>(begin / keys_per_task)];
    for (std::int64_t i = begin; i < end; ++i) count += is_first(i) ? 1 : 0;
  });
  const std::int64_t added = exclusive_scan(std::span(firsts));
  require_room(count_ + added);
  const std::size_t appeared_before = appeared.size();
  appeared.resize(appeared_before + static_cast<std::size_t>(added));
  parallel_ranges(size, keys_per_task, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t rank = firsts[static_cast<std::size_t>(begin / keys_per_task)];
    for (std::int64_t i = begin; i < end; ++i) {
      if (!is_first(i)) continue;
      appeared[appeared_before + static_cast<std::size_t>(rank)] =
          keys[static_cast<std::size_t>(i)];
      known(i).store(static_cast<std::uint32_t>(count_ + rank++), std::memory_order_relaxed);
    }
  });
  parallel_for(size, keys_per_task, [&](std::int64_t i) {
    numbers[static_cast<std::size_t>(i)] =
        static_cast<VertexId>(known(i).load(std::memory_order_relaxed));
  });
  count_ += static_cast<VertexId>(added);
}

template class Numbering<std::uint32_t>;
template class Numbering<std::uint64_t>;

}  // namespace tessera::sample
