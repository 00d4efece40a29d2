#pragma once

#include <optional>
#include <string>

#include "core/named_tensors.h"

namespace olmo::train {

/// The name of the first tensor that holds a NaN or an infinity; nothing if none does. Floats only;
/// tensors are contiguous.
std::optional<std::string> first_not_finite(const NamedTensors& tensors);

}  // namespace olmo::train
