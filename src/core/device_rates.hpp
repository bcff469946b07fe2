// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "tessera/core/device_profile.hpp"

namespace tessera {

/// What schedules ask of a profile.
DeviceTraits traits_of(const DeviceProfile& profile);

/// A profile for a GPU with these traits: what happens in processors and caches is scaled by
/// processors and clock, what comes from memory by its bandwidth. What a driver does not tell (0)
/// is taken to be as in `known`.
DeviceProfile scaled_profile(const DeviceProfile& known, const DeviceTraits& traits);

/// The built-in profile of such a GPU: that of its name, else the newest one that is no newer.
const DeviceProfile& nearest_profile(const DeviceTraits& traits);

}  // namespace tessera
