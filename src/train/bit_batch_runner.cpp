// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/side_stream.hpp"
#include "tessera/core/recording.hpp"
#include "tessera/train/bit_batches.hpp"

namespace tessera::train {
namespace {

nn::BitNetworkOptions on_stream(nn::BitNetworkOptions options, const BitBatches& batches,
                                Stream stream) {
  options.plans.stream = stream;
  options.lists = batches.has_lists();
  options.scales_features = batches.scales_features();
  return options;
}

/// Batches of one stream, one after another.
struct Lane {
  Lane(const nn::BitSteps& steps, const BitBatches& batches, const nn::BitNetworkOptions& options)
      : stream(options.plans.device),
        network(steps, batches.vertices(), batches.block(), on_stream(options, batches, stream)),
        memory(options.plans.device.kind == DeviceKind::cpu ? 0 : batches.bytes(),
               Place(options.plans.device, options.plans.memory, stream)) {}

  SideStream stream;
  nn::BitNetwork network;
  Buffer<std::byte> memory;  ///< of a batch, on the device
  Recording recording;       ///< of all its batches; empty until they have run once
};

}  // namespace

struct BitBatchRunner::State {
  State(const nn::BitSteps& steps, const BitBatches& given, const nn::BitNetworkOptions& options)
      : batches(given), device(options.plans.device) {
    const std::int64_t count = device.kind == DeviceKind::cpu
                                   ? 1
                                   : std::clamp<std::int64_t>(batches.size(), 1, most_lanes);
    for (std::int64_t i = 0; i < count; ++i) {
      lanes.push_back(std::make_unique<Lane>(steps, batches, options));
    }
    width = lanes.front()->network.output_width();
    values = Buffer<float>(checked_area(checked_area(batches.size(), batches.vertices()), width),
                           Place(device, options.plans.memory));
    synchronise(device);
  }

  float* values_of(std::int64_t batch) {
    return values.data() + batch * batches.vertices() * width;
  }

  void queue(Lane& lane, std::int64_t batch, Stream stream) {
    const std::byte* at = batches.data(batch);
    if (!lane.memory.empty()) {
      copy_bytes(lane.memory.data(), at, static_cast<std::size_t>(batches.bytes()), device, stream);
      at = lane.memory.data();
    }
    lane.network.run(batches.view(at, device),
                     {values_of(batch), batches.vertices(), width, device}, stream);
  }

  void run() {
    if (lanes.front()->recording.empty()) {
      for (std::int64_t batch = 0; batch < batches.size(); ++batch) {
        Lane& lane = *lanes[static_cast<std::size_t>(batch) % lanes.size()];
        queue(lane, batch, lane.stream);
      }
    } else {
      for (const auto& lane : lanes) lane->recording.replay(lane->stream);
    }
    for (const auto& lane : lanes) synchronise(device, lane->stream);
    if (lanes.front()->recording.empty() && why_not_recorded(device).empty()) record();
  }

  /// Products of small batches take less than starting their kernels one by one.
  void record() {
    const auto count = static_cast<std::int64_t>(lanes.size());
    for (std::int64_t i = 0; i < count; ++i) {
      Lane& lane = *lanes[static_cast<std::size_t>(i)];
      lane.recording = Recording::of(device, [&](Stream stream) {
        for (std::int64_t batch = i; batch < batches.size(); batch += count) {
          queue(lane, batch, stream);
        }
      });
    }
  }

  const BitBatches& batches;
  Device device;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::int64_t width = 0;
  Buffer<float> values;
};

BitBatchRunner::BitBatchRunner(const nn::BitSteps& steps, const BitBatches& batches,
                               const nn::BitNetworkOptions& options)
    : state_(std::make_unique<State>(steps, batches, options)) {}
BitBatchRunner::BitBatchRunner(BitBatchRunner&&) noexcept = default;
BitBatchRunner& BitBatchRunner::operator=(BitBatchRunner&&) noexcept = default;
BitBatchRunner::~BitBatchRunner() = default;

void BitBatchRunner::run() { state_->run(); }

Matrix<float> BitBatchRunner::values(std::int64_t batch) const {
  Matrix<float> result(state_->batches.vertices(), state_->width);
  copy_bytes(result.data(), state_->values_of(batch),
             static_cast<std::size_t>(result.size()) * sizeof(float), state_->device);
  synchronise(state_->device);
  return result;
}

std::int64_t BitBatchRunner::bytes_copied() const {
  const bool copies = state_->device.kind != DeviceKind::cpu;
  return copies ? state_->batches.size() * state_->batches.bytes() : 0;
}

ops::Explanation BitBatchRunner::explain() const {
  return state_->lanes.front()->network.explain();
}

}  // namespace tessera::train
