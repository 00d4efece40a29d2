#include "report/evaluations/perplexity_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "core/text/number.h"
#include "report/comparability/comparability.h"
#include "report/evaluations/evaluation_match.h"
#include "report/stats/bootstrap.h"
#include "report/stats/interval.h"

namespace olmo::report {
namespace {

/// What is drawn together and summed: documents with their lengths, or answers without weights.
struct Units {
  SourceComparison source;
  std::vector<double> differences, weights;

  [[nodiscard]] Stratum stratum() const { return {differences, weights}; }
};

double bits(double nats) { return nats / std::log(2.0); }

const char* unit_name(bool per_byte) { return per_byte ? kBitsPerByte : kBitsPerToken; }

/// Two-sided p of "no difference": twice the smaller share of the resampled values on a side of 0,
/// widened as the interval and counted with one more (Davison and Hinkley 1997, sec. 4.2).
double difference_p(const Bootstrap& bootstrap) {
  const auto& values = bootstrap.resampled;
  const double zero =
      bootstrap.estimate - bootstrap.estimate / widening(bootstrap.degrees_of_freedom, 0.95);
  const auto below = std::upper_bound(values.begin(), values.end(), zero) - values.begin();
  const auto above = values.end() - std::lower_bound(values.begin(), values.end(), zero);
  const auto fewer = static_cast<double>(std::min(below, above));
  return std::min(1.0, 2 * (fewer + 1) / (static_cast<double>(values.size()) + 1));
}

/// Fills what the bootstrap tells. p stays 1 where there are too few units.
void test(std::span<const Stratum> strata, double margin, SourceComparison& source) {
  if (const auto bootstrap = bootstrap_mean_of_strata(strata)) {
    source.interval95 = bootstrap->interval(0.95);
    source.equivalence = bootstrap_equivalence(*bootstrap, margin);
    const double rounding =
        kRoundingOfMeans * std::max(std::abs(source.bpb_a), std::abs(source.bpb_b));
    source.p = std::abs(source.difference) <= rounding ? 1 : difference_p(*bootstrap);
  }
  source.holm_p = source.p;
}

/// The sources of a suite by name; those without any length have no ratio and are left out.
std::vector<Units> units_of(const SuitePair& suite) {
  const bool per_byte = std::any_of(suite.documents.begin(), suite.documents.end(),
                                    [](const DocumentPair& pair) { return pair.a->bytes > 0; });
  std::map<std::string, Units> by_source;
  for (const auto& [a, b] : suite.documents) {
    Units& units = by_source[a->source.empty() ? kUnnamedSource : a->source];
    ++units.source.documents;
    units.source.tokens += a->tokens;
    units.source.bytes += a->bytes;
    units.source.bpb_a += bits(a->nll);
    units.source.bpb_b += bits(b->nll);
    units.source.equal_bits += same_bits(a->nll, b->nll);
    units.differences.push_back(bits(b->nll - a->nll));
    units.weights.push_back(static_cast<double>(per_byte ? a->bytes : a->tokens));
  }
  std::vector<Units> sources;
  for (auto& [name, units] : by_source) {
    const auto length = static_cast<double>(per_byte ? units.source.bytes : units.source.tokens);
    if (length == 0) continue;
    units.source.suite = suite.a->suite;
    units.source.source = name;
    units.source.unit = unit_name(per_byte);
    units.source.bpb_a /= length;
    units.source.bpb_b /= length;
    units.source.difference = units.source.bpb_b - units.source.bpb_a;
    sources.push_back(std::move(units));
  }
  return sources;
}

SourceComparison macro_of(const std::vector<Units>& sources, double margin) {
  SourceComparison macro;
  macro.suite = sources.front().source.suite;
  macro.unit = sources.front().source.unit;
  const auto count = static_cast<double>(sources.size());
  std::vector<Stratum> strata;
  for (const Units& units : sources) {
    macro.documents += units.source.documents;
    macro.tokens += units.source.tokens;
    macro.bytes += units.source.bytes;
    macro.equal_bits += units.source.equal_bits;
    macro.bpb_a += units.source.bpb_a / count;
    macro.bpb_b += units.source.bpb_b / count;
    strata.push_back(units.stratum());
  }
  macro.difference = macro.bpb_b - macro.bpb_a;
  test(strata, margin, macro);
  return macro;
}

void compare_suite(const SuitePair& suite, double margin, PerplexityComparison& comparison) {
  const std::vector<Units> sources = units_of(suite);
  if (sources.empty())
    comparison.invalid.push_back(suite.a->suite + ": no document has a token or a byte");
  for (const Units& units : sources) {
    comparison.sources.push_back(units.source);
    test(std::array{units.stratum()}, margin, comparison.sources.back());
  }
  if (sources.size() > 1) comparison.sources.push_back(macro_of(sources, margin));
}

std::int64_t length_of(const EvaluatedInstance& instance, bool per_byte) {
  return per_byte ? instance.answer_bytes : instance.answer_tokens;
}

/// True if every right answer has the same length, at least 1, on both sides.
bool equal_lengths(const TaskPair& task, bool per_byte) {
  return std::all_of(task.instances.begin(), task.instances.end(), [&](const InstancePair& pair) {
    const auto length = length_of(*pair.a, per_byte);
    return length > 0 && length == length_of(*pair.b, per_byte);
  });
}

double answer_nll(const EvaluatedTask& task, const EvaluatedInstance& instance) {
  return -task.logprobs[static_cast<std::size_t>(instance.first_option + instance.label)];
}

void compare_answers(const TaskPair& task, double margin, PerplexityComparison& comparison) {
  const bool per_byte = equal_lengths(task, true);
  if (!per_byte && !equal_lengths(task, false)) {
    comparison.invalid.push_back(task.a->task +
                                 ": the lengths of the right answers are unequal or unknown");
    return;
  }
  SourceComparison source;
  source.suite = task.a->task;
  source.source = kAnswers;
  source.unit = unit_name(per_byte);
  source.documents = std::ssize(task.instances);
  const auto n = static_cast<double>(source.documents);
  std::vector<double> differences;
  for (const auto& [a, b] : task.instances) {
    const double nll_a = answer_nll(*task.a, *a), nll_b = answer_nll(*task.b, *b);
    const auto length = static_cast<double>(length_of(*a, per_byte));
    source.tokens += a->answer_tokens;
    source.bytes += a->answer_bytes;
    source.bpb_a += bits(nll_a) / length / n;
    source.bpb_b += bits(nll_b) / length / n;
    source.equal_bits += same_bits(nll_a, nll_b);
    differences.push_back(bits(nll_b - nll_a) / length);
  }
  source.difference = source.bpb_b - source.bpb_a;
  test(std::array{Stratum{differences, {}}}, margin, source);
  comparison.sources.push_back(std::move(source));
}

/// Holm over the sources; macro averages are made of them.
void adjust_for_all_sources(std::vector<SourceComparison>& sources) {
  std::vector<SourceComparison*> family;
  std::vector<double> p;
  for (auto& source : sources) {
    if (source.source.empty()) continue;
    family.push_back(&source);
    p.push_back(source.p);
  }
  if (p.empty()) return;
  const auto adjusted = holm_adjusted(p);
  for (std::size_t i = 0; i < family.size(); ++i) family[i]->holm_p = adjusted[i];
}

}  // namespace

PerplexityComparison compare_perplexity(const EvaluationData& a, const EvaluationData& b,
                                        double margin) {
  Findings findings;
  const bool other_tokenizer = conflicts(a.tokenizer_digest, b.tokenizer_digest);
  const auto suites = match_suites(a, b, !other_tokenizer, findings);
  const auto tasks = match_tasks(a, b, TaskMetric::kCost, findings);
  PerplexityComparison comparison;
  comparison.invalid = std::move(findings.invalid);
  comparison.mismatched = std::move(findings.mismatched);
  if (other_tokenizer && !(suites.empty() && tasks.empty()))
    comparison.mismatched.push_back("the tokenizers differ, " + a.tokenizer_digest.substr(0, 16) +
                                    " and " + b.tokenizer_digest.substr(0, 16));
  for (const SuitePair& suite : suites) compare_suite(suite, margin, comparison);
  for (const TaskPair& task : tasks) compare_answers(task, margin, comparison);
  adjust_for_all_sources(comparison.sources);
  return comparison;
}

}  // namespace olmo::report
