// Where the runs part, in sentences that HTML and Markdown share, and what audits measured.
#include <array>

#include "core/text/safe_text.h"
#include "page/html.h"
#include "report/page/sections.h"

namespace olmo::report::page {
namespace {

enum class Style { kPlain, kStrong, kCode };

struct Piece {
  std::string text;
  Style style = Style::kPlain;
};
using Sentence = std::vector<Piece>;

Piece strong(std::int64_t value) { return {count(value), Style::kStrong}; }
Piece named(const std::string& name) { return {name, Style::kCode}; }

std::string html_of(const Sentence& sentence) {
  std::string html;
  for (const auto& [text, style] : sentence)
    html += style == Style::kCode     ? code(text)
            : style == Style::kStrong ? element("b", "", shown(text))
                                      : shown(text);
  return html;
}

/// Text of a record that could end a code span, or be taken for markup, is shown without one.
std::string markdown_code(const std::string& text) {
  const bool safe = text.find_first_of("`|\n\t") == std::string::npos && shown(text, 1000) == text;
  return safe ? "`" + text + "`" : markdown_text(text);
}

std::string markdown_of(const Sentence& sentence) {
  std::string out;
  for (const auto& [text, style] : sentence)
    out += style == Style::kCode ? markdown_code(text) : markdown_text(text);
  return out;
}

Sentence chain_sentence(const Identity& identity) {
  const std::string what = !identity.same_format ? "losses and gradient norms"
                           : identity.in_chain() ? "hash chains"
                                                 : "records";
  if (!identity.same_format && identity.first_different == 0)
    return {{"Losses and gradient norms have the same bits in all "},
            strong(identity.common_steps),
            {" common steps."}};
  if (identity.first_different == 0)
    return {{"The hash chains agree for all "},
            strong(identity.common_steps),
            {" common steps: batch, loss and gradient norm have the same bits, and so has whatever "
             "else the records tell of a step but its time."}};
  Sentence sentence;
  if (identity.equal_steps == 0)
    sentence = {{"The " + what + " agree at no step; "}};
  else
    sentence = {{"The " + what + " agree through step "}, strong(identity.equal_through), {"; "}};
  sentence.insert(sentence.end(), {{"step "},
                                   strong(identity.first_different),
                                   {" of " + count(identity.common_steps) +
                                    " common ones is the first that differs"}});
  if (!identity.first_field.empty())
    sentence.insert(sentence.end(), {{", in "}, named(identity.first_field)});
  sentence.push_back({"."});
  return sentence;
}

Sentence parted_sentence(const HashedState& parted) {
  Sentence sentence = {strong(parted.different),
                       {" of " + count(parted.tensors) + " tensors differ at step "},
                       strong(parted.step),
                       {": "}};
  for (std::size_t i = 0; i < parted.names.size(); ++i) {
    if (i > 0) sentence.push_back({", "});
    sentence.push_back(named(parted.names[i]));
  }
  const auto unnamed = parted.different - static_cast<std::int64_t>(parted.names.size());
  sentence.push_back({unnamed > 0 ? " and " + count(unnamed) + " more." : "."});
  return sentence;
}

void add_states(const Identity& identity, std::vector<Sentence>& sentences) {
  if (!identity.last_state) {
    sentences.push_back(
        {{"Weights and optimizer state were not hashed at a step that both "
          "reached."}});
    return;
  }
  if (const auto& equal = identity.equal_state)
    sentences.push_back({{"All " + count(equal->tensors) +
                          " tensors of weights and optimizer state are the same at step "},
                         strong(equal->step),
                         {identity.parted_state ? ", the last at which all are." : "."}});
  if (!identity.parted_state) return;
  sentences.push_back(parted_sentence(*identity.parted_state));
  const HashedState& last = *identity.last_state;
  if (last.step != identity.parted_state->step)
    sentences.push_back({{count(last.tensors - last.different) + " of " + count(last.tensors) +
                          " tensors are the same at step " + count(last.step) + "."}});
}

void add_operation(const TracedOperation& found, std::vector<Sentence>& sentences) {
  if (!found.traced)
    sentences.push_back(
        {{"No operation can be named: no step from which the runs part was traced "
          "on both sides."}});
  else if (found.operation.empty())
    sentences.push_back({{"No operation differs in the traces up to step " + count(*found.traced) +
                          ". A trace that an audit recorded tells what its machine computes, not "
                          "what the record says."}});
  else
    sentences.push_back({{"The first operation that differs in the traces of step "},
                         strong(*found.traced),
                         {" is "},
                         named(found.operation),
                         {": " + found.reason +
                          (*found.traced > found.parted
                               ? ". The runs had parted before, at step " + count(found.parted)
                               : "") +
                          "."}});
  if (!found.to_run.empty())
    sentences.push_back({{"To name the operation, run "},
                         named(found.to_run),
                         {" on each side's machine and make this report again."}});
}

std::vector<Sentence> parting(const Identity& identity) {
  std::vector<Sentence> sentences = {chain_sentence(identity)};
  if (identity.same_format)
    sentences.push_back({{count(identity.equal_batches) + " of " + count(identity.common_steps) +
                          " common steps saw the same batch."}});
  else
    sentences.push_back(
        {{"The hash chains have different formats (an older olmo-harness recorded one of the "
          "sides), so it is unknown whether they agree and whether the batches were the same."}});
  add_states(identity, sentences);
  if (identity.operation) add_operation(*identity.operation, sentences);
  return sentences;
}

// --- the distances ---

constexpr std::array<const char*, 7> kColumns = {"Side",   "Numerics",   "Steps audited", "On",
                                                 "Result", "Loss, nats", "Gradient norm"};
using Row = std::array<std::string, kColumns.size()>;

std::string distance_text(const std::optional<double>& distance) {
  return distance ? number(*distance, 3) : "not measured";
}

void add_rows(char side, const ReferenceDistance& reference, std::vector<Row>& rows) {
  const std::string numerics = reference.numerics.empty() ? "not recorded" : reference.numerics;
  const std::string letter(1, side);
  if (reference.audits.empty())
    rows.push_back({letter, numerics, "not audited", "–", "–", "not measured", "not measured"});
  for (const AuditedStretch& audit : reference.audits)
    rows.push_back({letter, numerics, count(audit.first_step) + " to " + count(audit.last_step),
                    audit.machine.empty() ? "not recorded" : audit.machine, audit_result(audit),
                    distance_text(audit.ce_loss), distance_text(audit.grad_norm)});
}

std::vector<Row> distance_rows(const Identity& identity) {
  std::vector<Row> rows;
  add_rows('A', identity.reference_a, rows);
  add_rows('B', identity.reference_b, rows);
  if (const auto& between = identity.between; between && between->steps > 0)
    rows.push_back({"A–B", "–", count(between->steps) + " of both", "–", "–",
                    number(between->ce_loss, 3), number(between->grad_norm, 3)});
  return rows;
}

std::vector<Sentence> distance_sentences(const Identity& identity) {
  std::vector<Sentence> sentences;
  for (const auto& [side, reference] :
       {std::pair{"A", &identity.reference_a}, std::pair{"B", &identity.reference_b}}) {
    if (!reference->ce_loss)
      sentences.push_back({{std::string("How far ") + side +
                            " is from the portable reference is not measured: run "},
                           named("olmo-harness audit RUN --sample 2 --record"),
                           {" on its database and checkpoints."}});
  }
  if (!identity.between) return sentences;
  if (identity.between->steps == 0)
    sentences.push_back(
        {{"No step was audited on both sides, so their distances cannot be set "
          "against each other."}});
  else if (identity.between->explained)
    sentences.push_back(
        {{"At the steps audited on both sides, the losses are no further apart than "
          "the two are from the reference together."}});
  else
    sentences.push_back(
        {{"At the steps audited on both sides, the losses are further apart than "
          "the two are from the reference together: these steps began with other "
          "weights, or saw other data."}});
  return sentences;
}

constexpr char kAbout[] =
    "The reference is what portable numerics give from the same checkpoint: the same bits on every "
    "machine. The largest distance over the audited steps is shown, of the gradient norm relative "
    "to "
    "it.";

std::string distances_html(const Identity& identity) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < kColumns.size(); ++i) columns.push_back({kColumns.at(i), i >= 5});
  Table table(columns);
  for (const Row& row : distance_rows(identity)) {
    std::vector<std::string> cells = {row[0].size() == 1 ? side_mark(row[0][0]) : row[0]};
    for (std::size_t i = 1; i < row.size(); ++i) cells.push_back(shown(row.at(i), 200));
    table.row(cells, row[0].size() == 1 ? "" : "sum");
  }
  std::string html = "<h3>Distance from the portable reference</h3>\n" + table.html();
  for (const Sentence& sentence : distance_sentences(identity))
    html += paragraph(html_of(sentence));
  return html + note(kAbout);
}

std::string distances_markdown(const Identity& identity) {
  std::string out = "\n|", rule = "\n|";
  for (const char* column : kColumns) {
    out += std::string(" ") + column + " |";
    rule += "---|";
  }
  out += rule + "\n";
  for (const Row& row : distance_rows(identity)) {
    out += "|";
    for (const std::string& cell : row) out += " " + markdown_text(cell) + " |";
    out += "\n";
  }
  out += "\n";
  for (const Sentence& sentence : distance_sentences(identity))
    out += "- " + markdown_of(sentence) + "\n";
  return out + "- " + kAbout + "\n";
}

constexpr char kUnknown[] =
    "Not known: a hash chain of batches and results is needed on both sides.";

}  // namespace

std::string audit_result(const AuditedStretch& audit) {
  if (audit.verdict == "identical") return "the same bits";
  if (audit.verdict == "within_envelope") return "within the envelope";
  std::string text = "differs";
  if (audit.difference_step) text += " at step " + count(*audit.difference_step);
  if (!audit.difference.empty()) text += " in " + audit.difference;
  const bool said = audit.operation.empty() || audit.operation == audit.difference;
  return said ? text : text + ", operation " + audit.operation;
}

std::string identity_section(const ParityReport& report) {
  const Identity& identity = report.identity;
  if (!identity.known) return empty_section("identity", "Identity", kUnknown);
  std::string html;
  for (const Sentence& sentence : parting(identity)) html += paragraph(html_of(sentence));
  html += distances_html(identity);
  if (!identity.chain_a.empty() || !identity.chain_b.empty())
    html += note("Last chain hashes<br>" + side_mark('A') + code(identity.chain_a) + "<br>" +
                 side_mark('B') + code(identity.chain_b));
  return section("identity", "Identity", html);
}

std::string identity_markdown(const Identity& identity) {
  std::string out = "## Identity\n\n";
  if (!identity.known) return out + kUnknown + "\n";
  for (const Sentence& sentence : parting(identity)) out += "- " + markdown_of(sentence) + "\n";
  return out + distances_markdown(identity);
}

}  // namespace olmo::report::page
