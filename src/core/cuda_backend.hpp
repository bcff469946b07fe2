// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"

#include "core/device_traits.hpp"

/// What the core needs of CUDA. `cuda_backend_present.cpp` implements it with the CUDA runtime,
/// `cuda_backend_absent.cpp` by saying that it is not there; a build contains one of the two.
namespace tessera::cuda_backend {

constexpr const char* absent_message = "built without CUDA";

bool present() noexcept;

/// GPUs that this process can use; 0 where there is no driver.
int device_count() noexcept;

/// What the driver says of a GPU.
DeviceTraits traits(int index);

/// Returns the GPU that was current before; -1 where it was this one.
int make_current(int index);
/// Back from it. Does not throw: what fails here fails the next call, too.
void make_current_again(int index) noexcept;

/// The stream-ordered memory of one GPU.
MemoryResource& memory(int index);

/// Page-locked memory of this process.
MemoryResource& transfer_memory();

/// Both places may be on the host or on any GPU. On a GPU's stream the copy is queued; a copy to or
/// from ordinary host memory has happened when the call returns.
void copy(void* to, const void* from, std::size_t bytes, Device device, Stream stream);

void fill_zero(void* memory, std::size_t bytes, Device device, Stream stream);

void synchronise(Device device, Stream stream);

/// A point in a stream's queue. Recording does nothing while the stream is captured: captured work
/// has not happened.
void* make_event(Device device);
void record_event(void* event, Device device, Stream stream);
/// The stream goes on when all that was recorded has happened. These two report no failure: they
/// clean up.
void wait_for_event(void* event, Device device, Stream stream) noexcept;
void destroy_event(void* event) noexcept;

/// An event that the host can wait for, and that has a time.
void* make_timed_event(Device device);
void synchronise_event(void* event, Device device);
double seconds_between(void* earlier, void* later);

/// Brings a stream behind what was recorded: a stream that is `in_order` is behind it already, but
/// captured work, which runs whenever somebody launches it, waits here. True where it is now known
/// that all has happened.
bool follow_event(void* event, Device device, Stream stream, bool in_order);

/// What the GPU's pool of memory has handed out.
MemoryUse memory_use(int index);
void reset_memory_peak(int index);

/// What `work` queues on the stream it is given, not run but kept. See core/recording.hpp.
std::shared_ptr<const void> record(Device device, FunctionRef<void(Stream)> work);
std::int64_t num_launches(const void* recorded);
void replay(const void* recorded, Device device, Stream stream);

}  // namespace tessera::cuda_backend
