// The page of one instance (serve/instances.h).
#pragma once

#include <vector>

#include "serve/frame.h"
#include "serve/instance_texts.h"
#include "serve/scored_task.h"

namespace olmo::serve {

/// The tabs of the run that a task was evaluated for.
std::vector<Link> run_tabs_of(const ScoredTask& task);

/// `doc=NUMBER` of a task: prompt, continuations with their scores, and those of the other
/// evaluation.
Response instance_page(Catalog& catalog, InstanceTexts& texts, const Request& request);

}  // namespace olmo::serve
