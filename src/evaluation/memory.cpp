#include "evaluation/memory.h"

#include <algorithm>

#include "core/error.h"
#include "data/token_file.h"
#include "eval/load_task.h"
#include "evaluation/evaluation.h"

namespace olmo::evaluation {
namespace {

constexpr std::int64_t kBytesOfToken = 4;  ///< of text; and of a token's id

/// Instances of one task: their texts, the tokens of each option with its context, and a row of the
/// record for each.
void add_task(const eval::LoadedTask& loaded, EvaluationMemory& memory) {
  constexpr auto kOption = static_cast<std::int64_t>(
      sizeof(eval::Option) + sizeof(eval::ScoredSequence) + 2 * sizeof(OptionRow));
  std::int64_t shared = 0;  // bytes of text that rows of the model stand for
  for (const auto& [doc_id, native_id, label, options] : loaded.examples) {
    if (!options.empty()) shared += std::ssize(options.front().context);
    for (const auto& [context, continuation, unconditional] : options) {
      const auto text = std::ssize(context) + std::ssize(continuation);
      memory.texts += text + text / kBytesOfToken * kBytesOfToken + kOption;
      shared += std::ssize(continuation);
    }
  }
  memory.rows += shared / kBytesOfToken;
}

/// Instances of token files: at most so many are held at a time.
void add_suite(std::int64_t instances, std::int64_t max_length, EvaluationMemory& memory) {
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 20;
  const std::int64_t tokens = instances * max_length;
  memory.rows = std::max(memory.rows, tokens);
  memory.texts += 2 * kBytesOfToken * std::min(tokens, kMostTokens) +
                  2 * static_cast<std::int64_t>(sizeof(DocumentRow)) * instances;
}

}  // namespace

std::int64_t most_rows(std::int64_t max_length) {
  return std::max(eval::QueueOptions().forest_rows, max_length);
}

std::int64_t instances_of(const eval::PerplexitySuite& suite, std::int64_t max_length) {
  std::int64_t instances = 0;
  const auto dtype = suite.dtype.value_or(data::TokenDtype::kUint16);
  for (const auto& source : suite.sources) {
    for (const auto& file : source.files)
      instances += static_cast<std::int64_t>(data::TokenFile(file.path, dtype).size()) / max_length;
  }
  return instances;
}

EvaluationMemory memory_of(const EvaluationPlan& plan) {
  EvaluationMemory memory;
  for (const auto& task : plan.tasks) {
    try {
      add_task(eval::load_task(task, plan.limit), memory);
    } catch (const Error& error) {  // the evaluation tells of it, and leaves it out
      if (error.kind() != ErrorKind::kInput) throw;
    }
  }
  for (const auto& suite : plan.suites) {
    const auto all = instances_of(suite, plan.max_length);
    add_suite(plan.only_documents ? std::ssize(*plan.only_documents) : all, plan.max_length,
              memory);
  }
  const std::int64_t longest =
      plan.tasks.empty() ? plan.max_length : std::max(plan.max_length, plan.olmo_max_length);
  memory.rows = std::min(memory.rows, most_rows(longest));
  return memory;
}

}  // namespace olmo::evaluation
