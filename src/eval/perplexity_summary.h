#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/evaluation_rows.h"
#include "eval/perplexity_suite.h"

namespace olmo::eval {

struct BootstrapOptions {
  int resamples = 1000;  ///< 0: no intervals
  std::uint64_t seed = 6198;
};

/// The numbers of a suite from its rows alone, in whatever order these come. All of them are of one
/// suite.
///
/// Scopes: empty (the suite), `source=S`, `source=S/subdomain=D`, and the unweighted means
/// `source=S/macro` (over the domains of S: Paloma's headline), `macro` (over all domains of the
/// suite) and `macro/sources` (over the sources' macros). A domain is a (source, subdomain) with
/// scored tokens. Scopes that would repeat another (the domain of a source that has only one) are
/// left out.
///
/// Metrics of catwalk: `nll` (nats), `tokens`, `bytes`, `ppl` (per token), `ppl_byte`, `ppl_char`,
/// `ppl_word`, `bpb`; macros have the ratios only. Sums run over all documents of the scope first,
/// then one division (Catwalk's PerplexityMetrics); an overflow of exp is 1e30, as there.
/// Metrics of olmo: `ce_loss`, the mean over instances of their mean cross-entropy, and `ppl`, its
/// exp (olmo.eval.Evaluator's CrossEntropyLoss and Perplexity), `nll`, `tokens`.
///
/// Ratios have a standard error and a 95 % percentile interval by the bootstrap over documents
/// (instances): resampled with replacement within the scope; for macros, within each domain.
/// Scopes of which one document has tokens have none, nor have macros over such a domain: how far
/// that is off is not known. They depend on the rows and options alone.
std::vector<EvaluationMetric> summarize_perplexity(std::span<const DocumentRow> rows,
                                                   DocumentConvention convention,
                                                   const BootstrapOptions& options = {});

}  // namespace olmo::eval
