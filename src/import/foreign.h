#pragma once

#include <string>
#include <string_view>

namespace olmo::import {

/// Throws Error(kInput) for files that are no text and yet are what trainers leave (Parquet, W&B's
/// own .wandb, TensorBoard's events, databases, compressed files, UTF-16), with the command that
/// makes a readable file of them.
void refuse_foreign_log(std::string_view bytes, const std::string& file);

}  // namespace olmo::import
