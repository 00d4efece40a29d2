#include "eval/perplexity_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <string>

#include "core/compute/parallel.h"
#include "core/compute/random.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/sorted_quantile.h"

namespace olmo::eval {
namespace {

// What a row adds to a scope: first the numerator of every ratio, then the denominators.
constexpr std::size_t kQuantities = 5;
using Quantities = std::array<double, kQuantities>;
constexpr std::size_t kMaxRatios = 5;
using Values = std::array<double, kMaxRatios>;

/// A metric: exp(numerator / denominator), or their quotient times `scale`.
struct Ratio {
  const char* name;
  std::size_t denominator;  ///< place in Quantities
  bool exponential;
  double scale = 1.0;
};

// Catwalk: nll over tokens, bytes, chars, words. OLMo: Σ mean cross-entropy over instances.
constexpr Ratio kCatwalkRatios[] = {{"ppl", 1, true},
                                    {"ppl_byte", 2, true},
                                    {"ppl_char", 3, true},
                                    {"ppl_word", 4, true},
                                    {"bpb", 2, false, 1.0 / std::numbers::ln2}};
constexpr Ratio kOlmoRatios[] = {{"ce_loss", 1, false}, {"ppl", 1, true}};

/// A scope's ratios, and what they are in each resample (none for a scope of one document).
struct Estimate {
  Values values{};
  std::vector<Values> resampled;
  std::int64_t n = 0;
};

/// Rows of equal (source, subdomain), or of a source, or all.
using Group = std::vector<const DocumentRow*>;

struct Domain {
  std::string subdomain;
  Group rows;
};

struct Source {
  std::string name;
  std::vector<Domain> domains;  ///< in the order of their first rows
  Group rows;
};

std::vector<Source> group_rows(const Group& rows) {
  std::vector<Source> sources;
  std::map<std::string, std::size_t> source_of;
  std::map<std::pair<std::string, std::string>, std::size_t> domain_of;
  for (const DocumentRow* row : rows) {
    const auto source = source_of.try_emplace(row->source, sources.size());
    if (source.second) sources.push_back({.name = row->source, .domains = {}, .rows = {}});
    Source& in = sources[source.first->second];
    const auto domain = domain_of.try_emplace({row->source, row->subdomain}, in.domains.size());
    if (domain.second) in.domains.push_back({.subdomain = row->subdomain, .rows = {}});
    in.domains[domain.first->second].rows.push_back(row);
    in.rows.push_back(row);
  }
  return sources;
}

void add(Quantities& sum, const Quantities& term) {
  for (std::size_t i = 0; i < kQuantities; ++i) sum[i] += term[i];
}

bool has_tokens(const Group& rows) {
  return std::ranges::any_of(rows, [](const auto* row) { return row->tokens > 0; });
}

class Summary {
 public:
  Summary(DocumentConvention convention, const BootstrapOptions& options)
      : convention_(convention),
        options_(options),
        ratios_(convention == DocumentConvention::kCatwalk ? std::span<const Ratio>(kCatwalkRatios)
                                                           : std::span<const Ratio>(kOlmoRatios)) {}

  std::vector<EvaluationMetric> run(const Group& rows) {
    suite_ = rows.front()->suite;
    const std::vector<Source> sources = group_rows(rows);
    std::vector<Estimate> domains, of_sources, macros;
    for (const Source& source : sources) {
      auto own = estimate_domains(source);
      of_sources.push_back(source.domains.size() == 1 && own.size() == 1
                               ? own.front()
                               : estimate(source.rows, source.name));
      emit_sums("source=" + source.name, source.rows);
      emit("source=" + source.name, of_sources.back());
      if (own.empty()) continue;
      macros.push_back(mean(own));
      if (own.size() > 1) emit("source=" + source.name + "/macro", macros.back());
      std::move(own.begin(), own.end(), std::back_inserter(domains));
    }
    emit_sums("", rows);
    emit("", sources.size() == 1 ? of_sources.front() : estimate(rows, ""));
    if (domains.size() > 1) emit("macro", mean(domains));
    if (macros.size() > 1 && domains.size() > macros.size()) emit("macro/sources", mean(macros));
    return std::move(metrics_);
  }

 private:
  /// Estimates of the source's domains that have scored tokens, emitted if there are several.
  std::vector<Estimate> estimate_domains(const Source& source) {
    std::vector<Estimate> estimates;
    for (const Domain& domain : source.domains) {
      if (!has_tokens(domain.rows)) continue;
      estimates.push_back(
          estimate(domain.rows, source.name + std::string(1, '\0') + domain.subdomain));
      if (source.domains.size() == 1) continue;
      const std::string scope = "source=" + source.name + "/subdomain=" + domain.subdomain;
      emit_sums(scope, domain.rows);
      emit(scope, estimates.back());
    }
    return estimates;
  }

  [[nodiscard]] Quantities quantities(const DocumentRow& row) const {
    if (convention_ == DocumentConvention::kCatwalk)
      return {row.nll, static_cast<double>(row.tokens), static_cast<double>(row.bytes),
              static_cast<double>(row.chars), static_cast<double>(row.words)};
    return {row.tokens == 0 ? 0.0 : row.nll / static_cast<double>(row.tokens), 1.0};
  }

  /// Not a number where there is nothing to divide by.
  [[nodiscard]] Values values_of(const Quantities& sums) const {
    constexpr double kOverflow = 1e30;
    Values values{};
    for (std::size_t i = 0; i < ratios_.size(); ++i) {
      const double bottom = sums[ratios_[i].denominator];
      const double quotient =
          bottom > 0 ? sums[0] / bottom : std::numeric_limits<double>::quiet_NaN();
      const double power = std::exp(quotient);
      values[i] = !ratios_[i].exponential ? quotient * ratios_[i].scale
                  : std::isinf(power)     ? kOverflow
                                          : power;
    }
    return values;
  }

  /// `stream` names the random numbers: those of other scopes are independent.
  [[nodiscard]] Estimate estimate(const Group& rows, const std::string& stream) const {
    std::vector<Quantities> terms;
    terms.reserve(rows.size());
    Quantities sums{};
    for (const DocumentRow* row : rows) {
      terms.push_back(quantities(*row));
      add(sums, terms.back());
    }
    Estimate result{.values = values_of(sums), .resampled = {}, .n = to_count(rows.size())};
    if (counted_rows(rows) > 1) result.resampled = resample(terms, stream);
    return result;
  }

  /// How many rows have a part in the ratios. OLMo counts an instance without a token.
  [[nodiscard]] std::ptrdiff_t counted_rows(const Group& rows) const {
    if (convention_ == DocumentConvention::kOlmo) return std::ssize(rows);
    return std::ranges::count_if(rows, [](const auto* row) { return row->tokens > 0; });
  }

  [[nodiscard]] std::vector<Values> resample(const std::vector<Quantities>& terms,
                                             const std::string& stream) const {
    OLMO_CHECK(terms.size() <= std::numeric_limits<std::uint32_t>::max());
    const auto last = static_cast<std::uint32_t>(terms.size() - 1);
    const Digest digest = Sha256().update_u64(options_.seed).update(stream).finish();
    std::uint64_t seed = 0;
    for (std::size_t i = 0; i < sizeof(seed); ++i) seed = seed << 8 | digest.bytes[i];
    std::vector<Values> resampled(static_cast<std::size_t>(std::max(0, options_.resamples)));
    constexpr std::int64_t kDrawsPerTask = 1 << 16;
    const std::int64_t grain = std::max<std::int64_t>(1, kDrawsPerTask / to_count(terms.size()));
    parallel_for(0, to_count(resampled.size()), grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        Pcg64 random(seed + static_cast<std::uint64_t>(r));
        Quantities sums{};
        for (std::size_t i = 0; i < terms.size(); ++i) add(sums, terms[random.interval(last)]);
        resampled[static_cast<std::size_t>(r)] = values_of(sums);
      }
    });
    return resampled;
  }

  /// The unweighted mean of independent estimates. Where one of them has no resamples, nobody knows
  /// how far it is off, and so for the mean.
  [[nodiscard]] Estimate mean(const std::vector<Estimate>& estimates) const {
    Estimate result{.values = {}, .resampled = {}, .n = to_count(estimates.size())};
    const double share = 1.0 / static_cast<double>(estimates.size());
    if (std::ranges::none_of(estimates, [](const Estimate& one) { return one.resampled.empty(); }))
      result.resampled.resize(estimates.front().resampled.size());
    for (std::size_t m = 0; m < ratios_.size(); ++m) {
      for (const Estimate& one : estimates) {
        result.values[m] += one.values[m] * share;
        for (std::size_t r = 0; r < result.resampled.size(); ++r)
          result.resampled[r][m] += one.resampled[r][m] * share;
      }
    }
    return result;
  }

  void emit_sums(const std::string& scope, const Group& rows) {
    double nll = 0;
    std::int64_t tokens = 0;
    std::int64_t bytes = 0;
    for (const DocumentRow* row : rows) {
      nll += row->nll;
      tokens += row->tokens;
      bytes += row->bytes;
    }
    const std::int64_t n = to_count(rows.size());
    push(scope, "nll", nll, n);
    push(scope, "tokens", static_cast<double>(tokens), n);
    if (convention_ == DocumentConvention::kCatwalk)
      push(scope, "bytes", static_cast<double>(bytes), n);
  }

  void emit(const std::string& scope, const Estimate& estimate) {
    for (std::size_t m = 0; m < ratios_.size(); ++m) {
      if (std::isnan(estimate.values[m])) continue;
      EvaluationMetric& metric = push(scope, ratios_[m].name, estimate.values[m], estimate.n);
      std::vector<double> sorted;
      for (const Values& values : estimate.resampled)
        if (!std::isnan(values[m])) sorted.push_back(values[m]);
      if (sorted.size() > 1) add_interval(metric, sorted);
    }
  }

  EvaluationMetric& push(const std::string& scope, const char* name, double value, std::int64_t n) {
    metrics_.push_back({.task = suite_,
                        .scope = scope,
                        .metric = name,
                        .value = value,
                        .standard_error = {},
                        .low = {},
                        .high = {},
                        .n = n});
    return metrics_.back();
  }

  static void add_interval(EvaluationMetric& metric, std::vector<double>& values) {
    std::ranges::sort(values);
    const auto count = static_cast<double>(values.size());
    double sum = 0;
    for (const double value : values) sum += value;
    double squares = 0;
    for (const double value : values) squares += (value - sum / count) * (value - sum / count);
    metric.standard_error = std::sqrt(squares / (count - 1));
    metric.low = sorted_quantile(values, 0.025);
    metric.high = sorted_quantile(values, 0.975);
  }

  static std::int64_t to_count(std::size_t size) { return static_cast<std::int64_t>(size); }

  DocumentConvention convention_;
  BootstrapOptions options_;
  std::span<const Ratio> ratios_;
  std::string suite_;
  std::vector<EvaluationMetric> metrics_;
};

}  // namespace

std::vector<EvaluationMetric> summarize_perplexity(std::span<const DocumentRow> rows,
                                                   DocumentConvention convention,
                                                   const BootstrapOptions& options) {
  if (rows.empty()) return {};
  Group sorted;
  sorted.reserve(rows.size());
  for (const DocumentRow& row : rows) sorted.push_back(&row);
  std::sort(sorted.begin(), sorted.end(),
            [](const DocumentRow* a, const DocumentRow* b) { return a->index < b->index; });
  return Summary(convention, options).run(sorted);
}

}  // namespace olmo::eval
