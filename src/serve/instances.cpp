#include "serve/instances.h"

#include <algorithm>
#include <map>

#include "core/text/text.h"
#include "page/html.h"
#include "serve/curve_data.h"
#include "serve/form.h"
#include "serve/instance.h"
#include "serve/instance_texts.h"
#include "serve/scored_task.h"
#include "store/evaluations/evaluation_labels.h"

namespace olmo::serve {
namespace {

using page::element;
using page::escape;

constexpr std::int64_t kRowsOfPage = 50;

/// An instance of the list: as the evaluation scored it, and as the other one did.
struct Listed {
  Instance a;
  std::optional<Instance> b;  ///< of the same request
};

/// Which instances a reader wants to see.
struct Filter {
  const char* name;
  const char* text;
  bool needs_other;
  bool (*keeps)(const Listed&);
};

constexpr Filter kFilters[] = {
    {"all", "all", false, [](const Listed&) { return true; }},
    {"right", "right", false, [](const Listed& one) { return one.a.right(); }},
    {"wrong", "wrong", false, [](const Listed& one) { return !one.a.right(); }},
    {"flips", "chosen differently", true,
     [](const Listed& one) { return one.b && one.a.chosen != one.b->chosen; }},
    {"lost", "A wrong, B right", true,
     [](const Listed& one) { return one.b && !one.a.right() && one.b->right(); }},
    {"won", "A right, B wrong", true,
     [](const Listed& one) { return one.b && one.a.right() && !one.b->right(); }},
};

const Filter& filter_of(const Request& request, bool other) {
  for (const Filter& filter : kFilters)
    if (request.value("show") == filter.name && (other || !filter.needs_other)) return filter;
  return other && request.value("show").empty() ? kFilters[3] : kFilters[0];
}

std::vector<Listed> listed(const ScoredTask& a, const std::optional<ScoredTask>& b) {
  std::vector<Listed> list;
  std::map<std::int64_t, Instance> others;
  if (b)
    for (auto& instance : read_instances(*b)) others.emplace(instance.doc_id, std::move(instance));
  for (auto& instance : read_instances(a)) {
    Listed one{.a = std::move(instance), .b = {}};
    const auto other = others.find(one.a.doc_id);
    if (other != others.end() && other->second.requests == one.a.requests) one.b = other->second;
    list.push_back(std::move(one));
  }
  return list;
}

bool mentions(const Listed& one, const eval::Example* example, const std::string& wanted) {
  if (ascii_lower(one.a.native_id).find(wanted) != std::string::npos) return true;
  if (example == nullptr) return false;
  return std::any_of(example->options.begin(), example->options.end(), [&](const auto& option) {
    return ascii_lower(option.context + option.continuation).find(wanted) != std::string::npos;
  });
}

/// The numbers of the instances by their texts; empty where there are none.
std::map<std::int64_t, const eval::Example*> by_number(const InstanceTexts::Found& texts) {
  std::map<std::int64_t, const eval::Example*> examples;
  if (texts.task)
    for (const auto& example : texts.task->examples) examples[example.doc_id] = &example;
  return examples;
}

/// The end of a prompt is what the instance asks; examples stand before it.
std::string end_of(const std::string& text) {
  constexpr std::size_t kBytes = 160;
  if (text.size() <= kBytes) return page::shown(text, kBytes);
  std::size_t begin = text.size() - kBytes;
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80) ++begin;
  return "…" + escape(text.substr(begin));
}

std::string answer(const Instance& instance, const eval::Example* example) {
  const auto index = static_cast<std::size_t>(instance.chosen);
  const std::string text = example != nullptr && index < example->options.size()
                               ? page::shown(example->options[index].continuation, 80)
                               : "option " + std::to_string(instance.chosen);
  return element("span", instance.right() ? "good" : "bad", instance.right() ? "✓ " : "✗ ") + text;
}

/// Those that stand for themselves and scored the same task.
std::string lone_choices(const Listing& listing, const ScoredTask& a,
                         const std::optional<ScoredTask>& b) {
  std::string html = option("", "none", !b);
  for (const auto& one : listing.evaluations) {
    const bool scored =
        std::ranges::find(one.scores, a.record.task, &report::Score::task) != one.scores.end();
    if (scored && one.key != a.run.entry.key)
      html +=
          option(one.key, store::model_of(one.entry) + ", " + one.entry.created_utc.substr(0, 16),
                 b && one.key == b->run.entry.key);
  }
  return choice("with_run", "Beside", html);
}

/// The evaluations that this one can be compared with: those of its run, or of the run that it is
/// compared with already.
std::string other_choices(const Request& request, const Listing& listing, const ScoredTask& a,
                          const std::optional<ScoredTask>& b) {
  const ScoredTask& of = b ? *b : a;
  if (!of.run.is_run()) return lone_choices(listing, a, b);
  std::string html = option("", "none", !b);
  for (const auto& entry : evaluations_of(of.run))
    if (b || entry.evaluation_id != a.entry.evaluation_id)
      html += option(entry.evaluation_id,
                     (entry.record.step ? "step " + page::count(*entry.record.step) + ", " : "") +
                         entry.created_utc.substr(0, 16),
                     b && entry.evaluation_id == b->entry.evaluation_id);
  return hidden_field("with_run", request.value(b ? "with_run" : "run")) +
         choice("with", "Beside", html);
}

std::string filter_form(const Request& request, const Filter& chosen, const Listing& listing,
                        const ScoredTask& a, const std::optional<ScoredTask>& b) {
  const bool other = b.has_value();
  std::string html = "<form class=\"controls\" action=\"/instances\">\n";
  for (const char* name : {"run", "evaluation", "task"})
    html += hidden_field(name, request.value(name));
  std::string filters;
  for (const Filter& filter : kFilters)
    // Nothing is asked for yet: beside another evaluation what differs is shown first.
    if (other || !filter.needs_other)
      filters +=
          option(&filter == kFilters && !other ? "" : filter.name, filter.text, &filter == &chosen);
  const std::string sort = request.value("sort");
  const std::string orders = option("number", "by number", sort != "close" && sort != "clear") +
                             option("close", "closest choices first", sort == "close") +
                             option("clear", "clearest choices first", sort == "clear");
  return html + other_choices(request, listing, a, b) + choice("show", "Show", filters) +
         choice("sort", "Order", orders) +
         "<label>Text <input type=\"search\" name=\"q\" value=\"" + escape(request.value("q")) +
         "\"></label>\n<button>Show</button>\n</form>\n";
}

/// How often each evaluation was right, alone or with the other.
std::string counts(const std::vector<Listed>& list, const ScoredTask& a,
                   const std::optional<ScoredTask>& b) {
  const auto share = [&](auto&& holds) { return std::count_if(list.begin(), list.end(), holds); };
  const auto n = static_cast<std::int64_t>(list.size());
  const std::string by = "; ranked by " + page::code(a.record.primary_metric) + ", convention " +
                         page::code(a.record.convention);
  if (!b)
    return page::paragraph(page::count(share([](const Listed& one) { return one.a.right(); })) +
                           " of " + page::count(n) + " instances are right" + by + ".");
  const auto both = [](bool right_a, bool right_b) {
    return [=](const Listed& one) {
      return one.b && one.a.right() == right_a && one.b->right() == right_b;
    };
  };
  std::string html = page::side_mark('A') + page::shown(a.name(), 120) + "<br>" +
                     page::side_mark('B') + page::shown(b->name(), 120);
  html = page::paragraph(html) +
         page::paragraph("Right in both: " + page::count(share(both(true, true))) +
                         ", in A alone: " + page::count(share(both(true, false))) +
                         ", in B alone: " + page::count(share(both(false, true))) +
                         ", in neither: " + page::count(share(both(false, false))) + by + ".");
  const auto alone = share([](const Listed& one) { return !one.b; });
  if (alone > 0)
    html += page::note(page::count(alone) +
                       " instances of A have no partner in B: it did not score "
                       "them, or was asked another text.");
  if (a.record.primary_metric != b->record.primary_metric)
    html += page::note("B chose by another metric, " + page::code(b->record.primary_metric) +
                       ", so that some choices differ for that reason alone.");
  return html;
}

std::string table_of(const std::vector<Listed>& rows, const Request& request, bool other,
                     const std::map<std::int64_t, const eval::Example*>& examples) {
  std::vector<page::Column> columns = {{"No.", false}, {"Asked", false}};
  columns.push_back({other ? "A chose" : "Chosen", false});
  columns.push_back({other ? "A’s margin" : "Margin", true});
  if (other) {
    columns.push_back({"B chose", false});
    columns.push_back({"B’s margin", true});
  }
  columns.push_back({"Name in the data", false});
  page::Table table(columns);
  for (const Listed& one : rows) {
    const auto found = examples.find(one.a.doc_id);
    const eval::Example* example = found == examples.end() ? nullptr : found->second;
    std::vector<std::string> cells = {
        "<a href=\"" +
            escape(task_address("/instance", request, {{"doc", {std::to_string(one.a.doc_id)}}})) +
            "\">" + page::count(one.a.doc_id) + "</a>",
        example == nullptr || example->options.empty() ? ""
                                                       : end_of(example->options.front().context),
        answer(one.a, example), page::number(one.a.margin, 4)};
    if (other) {
      cells.push_back(one.b ? answer(*one.b, example) : "–");
      cells.push_back(one.b ? page::number(one.b->margin, 4) : "–");
    }
    cells.push_back(page::shown(one.a.native_id, 80));
    table.row(cells);
  }
  return table.empty() ? page::note("No instance is so.") : table.html();
}

std::string pager(const Request& request, std::int64_t first, std::int64_t n) {
  std::string html = page::count(n == 0 ? 0 : first + 1) + " to " +
                     page::count(std::min(n, first + kRowsOfPage)) + " of " + page::count(n);
  const auto to = [&](std::int64_t from, const char* text) {
    return " &ensp;<a href=\"" +
           escape(task_address("/instances", request, {{"from", {std::to_string(from)}}})) + "\">" +
           text + "</a>";
  };
  if (first > 0) html += to(std::max<std::int64_t>(0, first - kRowsOfPage), "previous");
  if (first + kRowsOfPage < n) html += to(first + kRowsOfPage, "next");
  return page::paragraph(html);
}

Response instances_page(Catalog& catalog, InstanceTexts& known, const Request& request) {
  const ScoredTask a = asked_task(catalog, request);
  const auto b = other_task(catalog, request);
  const auto all = listed(a, b);
  const auto texts = known.find(a.record.task, a.record.convention);
  const auto examples = by_number(texts);
  const Filter& filter = filter_of(request, b.has_value());
  const std::string wanted = ascii_lower(request.value("q"));
  std::vector<Listed> rows;
  for (const Listed& one : all) {
    if (!filter.keeps(one)) continue;
    const auto example = examples.find(one.a.doc_id);
    if (wanted.empty() ||
        mentions(one, example == examples.end() ? nullptr : example->second, wanted))
      rows.push_back(one);
  }
  const std::string sort = request.value("sort");
  if (sort == "close" || sort == "clear")
    std::stable_sort(rows.begin(), rows.end(), [&](const Listed& x, const Listed& y) {
      return sort == "close" ? x.a.margin < y.a.margin : x.a.margin > y.a.margin;
    });
  const auto n = static_cast<std::int64_t>(rows.size());
  const auto first =
      std::clamp<std::int64_t>(number_of(request, "from", 0), 0, std::max<std::int64_t>(0, n - 1));
  const std::vector<Listed> shown(rows.begin() + first,
                                  rows.begin() + std::min(n, first + kRowsOfPage));
  std::string body =
      counts(all, a, b) +
      filter_form(request, filter, *catalog.listing(std::chrono::milliseconds(0)), a, b);
  if (!texts.task)
    body += page::note("The texts cannot be shown, as the record has their hashes only: " +
                       page::shown(texts.problem, 400));
  body += pager(request, first, n) + table_of(shown, request, b.has_value(), examples);
  Frame frame;
  frame.title = a.record.task + ": instances";
  frame.heading = a.record.task;
  frame.kicker_html = "Instances of " + page::shown(a.name(), 160);
  frame.tabs = run_tabs_of(a);
  frame.wide = true;
  return html_response(framed(frame, body));
}

}  // namespace

std::vector<Link> run_tabs_of(const ScoredTask& task) {
  RunSet set;
  set.runs.push_back({.entry = task.run.entry,
                      .label = task.run.label,
                      .look = {},
                      .records = nullptr,
                      .problem = {},
                      .evaluation_id = task.run.evaluation_id});
  return set_tabs(set, "evaluations");
}

void add_instances(Routes& routes, Catalog& catalog) {
  const auto texts = std::make_shared<InstanceTexts>();
  routes.add("/instances", [&catalog, texts](const Request& request) {
    return instances_page(catalog, *texts, request);
  });
  routes.add("/instance", [&catalog, texts](const Request& request) {
    return instance_page(catalog, *texts, request);
  });
}

}  // namespace olmo::serve
