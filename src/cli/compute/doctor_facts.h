// What `olmo-harness doctor` finds out, each part as JSON; doctor.cpp shows it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/compute/policy.h"

namespace olmo::cli::compute {

using OrderedJson = nlohmann::ordered_json;

/// {"model", "cores_online", "cores_usable", "default_threads", "default_threads_by", "isas",
/// "caches": [{"name", "bytes"}]}
OrderedJson processor_facts();
/// {"total_bytes", "available_bytes", "cgroup_limit_bytes" or null}
OrderedJson memory_facts();
/// Graphics processors on the bus by vendor, and each library that a run on one needs: {"on_bus":
/// {"nvidia", "amd"}, "libraries": [{"device", "name", "for", "found", "problem", "command"}]}. The
/// vendors' libraries are loaded, LibTorch's are not, and no device is touched.
OrderedJson gpu_facts();
/// {"open_files", "file_bytes", "cores_restricted", "cgroup_cpus", "thread_variables"}; null: no
/// limit. "open_files" is the hard limit, to which a run raises its own (make_room_for_files).
OrderedJson limit_facts();
/// What a `train` in this environment would be: {"how", "rank", "size", "meet_at" or null, "note"
/// or null}, or {"problem"} with the sentence that would refuse it.
OrderedJson launch_facts();
/// {"cache", "evaluation_data", "current", "current_free_bytes", "current_writable"}
OrderedJson folder_facts();
/// The energy sensors that a training would read: [{"source", "device", "readable", "note"}].
OrderedJson sensor_facts();

/// One step of a very small model by every instruction set of this machine, on one thread and on
/// several: {"same", "ways": […], "operations": [{"name", "same", "sha256"}]}.
OrderedJson self_check();

/// Less than two seconds of measuring: {"fma_gflops", "product_gflops", "memory_gb_per_s",
/// "disk_mb_per_s" or null}, on the policy's threads and in the current folder.
OrderedJson measured_limits(const Policy& policy);

/// What would be wanted and is not there: [{"what", "why", "command"}], from the facts above.
OrderedJson missing_things(const OrderedJson& facts);

}  // namespace olmo::cli::compute
