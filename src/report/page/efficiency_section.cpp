#include <algorithm>
#include <functional>

#include "page/html.h"
#include "report/cost/efficiency.h"
#include "report/page/sections.h"

namespace olmo::report::page {
namespace {

using Value = std::function<std::string(const Efficiency&)>;

std::string quantity(Quantity value, const std::string& unit, std::string_view missing = {}) {
  if (!value) return absent(missing);
  return number(*value, 5) + (unit.empty() ? "" : " " + escape(unit));
}

std::string sourced(Quantity value, const std::string& unit, const std::string& source) {
  if (!value) return element("span", "absent", "not stated");
  return quantity(value, unit) +
         (source.empty() ? "" : "<br><span class=\"note\">" + shown(source) + "</span>");
}

/// Why no energy was measured: `absent` says before it that none was.
std::string_view why_no_energy(const Efficiency& efficiency) {
  constexpr std::string_view kSaid = "not measured: ";
  const std::string_view method = efficiency.energy_method;
  return method.starts_with(kSaid) ? method.substr(kSaid.size()) : method;
}

/// What follows from the hours of devices, and whether they are all.
std::string of_hours(const Efficiency& efficiency, Quantity value, const std::string& unit) {
  return value ? sourced(value, unit, efficiency.hours_note) : absent();
}

/// A line for each peak, with its source.
std::string each_peak(const Efficiency& efficiency,
                      const std::function<std::string(const Peak&)>& text) {
  std::string html;
  for (const Peak& peak : efficiency.peaks)
    html += (html.empty() ? "" : "<br>") + text(peak) + "<br><span class=\"note\">" +
            shown(peak.source) + "</span>";
  return html;
}

std::string seconds(Quantity value) { return value ? duration(*value) : absent(); }

class EfficiencyTable {
 public:
  explicit EfficiencyTable(std::span<const NamedSide> sides)
      : sides_(sides), table_(columns(sides)) {}

  void row(const char* name, const char* formula, const Value& value) {
    std::vector<std::string> cells = {name};
    for (const NamedSide& side : sides_)
      cells.push_back(side.efficiency == nullptr ? absent() : value(*side.efficiency));
    cells.push_back(element("span", "note", formula));
    table_.row(cells);
  }
  /// Whether `quantity` of some side is known.
  [[nodiscard]] bool is_known(Quantity Efficiency::*quantity) const {
    return std::ranges::any_of(sides_, [&](const NamedSide& side) {
      return side.efficiency != nullptr && side.efficiency->*quantity;
    });
  }
  [[nodiscard]] std::string html() const { return table_.html(); }

 private:
  static std::vector<Column> columns(std::span<const NamedSide> sides) {
    std::vector<Column> columns = {{"", false}};
    for (const NamedSide& side : sides) columns.push_back({std::string(1, side.letter), false});
    columns.push_back({"How", false});
    return columns;
  }

  std::span<const NamedSide> sides_;
  Table table_;
};

std::string lines_of(const std::vector<std::string>& lines) {
  std::string html;
  for (const auto& line : lines) html += (html.empty() ? "" : "<br>") + shown(line, 200);
  return html.empty() ? absent() : html;
}

std::string phases_of(const World& world) {
  std::vector<std::string> lines;
  const bool several = world.ranks.size() > 1;
  for (const PhaseTime& phase : world.phases)
    lines.push_back(phase.phase + " " + number(phase.mean, 3) + " s" +
                    (several ? " (" + number(phase.least, 3) + " to " + number(phase.most, 3) + ")"
                             : std::string()));
  return lines_of(lines);
}

void world_rows(EfficiencyTable& table) {
  table.row("Ranks", "processes that train together; of each attempt",
            [](const Efficiency& e) { return lines_of(e.world.attempts); });
  table.row("Time of a step by phase", "mean over the ranks (least to most of a minute)",
            [](const Efficiency& e) { return phases_of(e.world); });
  table.row("Slowest rank", "whose data and compute took longest most often; last attempt",
            [](const Efficiency& e) {
              return e.world.slowest ? shown(to_text(*e.world.slowest), 200) : absent();
            });
  table.row("Bytes sent in a step", "by all ranks; last attempt", [](const Efficiency& e) {
    const auto& bytes = e.world.bytes_of_step;
    return e.world.ranks.size() > 1 && bytes ? count(*bytes) : absent();
  });
}

void speed_rows(EfficiencyTable& table) {
  table.row("Device", "as recorded", [](const Efficiency& e) {
    const std::string name = e.device.empty() ? e.cluster.device : e.device;
    return name.empty() ? absent() : shown(name, 160);
  });
  table.row("Devices", "", [](const Efficiency& e) { return quantity(e.devices, ""); });
  table.row("Tokens", "steps that survived", [](const Efficiency& e) {
    return e.tokens ? count(static_cast<std::int64_t>(*e.tokens)) : absent();
  });
  table.row("Time to these tokens", "steps that survived",
            [](const Efficiency& e) { return seconds(e.train_seconds); });
  table.row("Time redone", "steps that a resume replaced",
            [](const Efficiency& e) { return seconds(e.redone_seconds); });
  table.row("Tokens per second",
            "median over the steps, all devices (of the last attempt, if it had others)",
            [](const Efficiency& e) { return quantity(e.tokens_per_second, ""); });
  table.row("Per device", "tokens per second ÷ devices",
            [](const Efficiency& e) { return quantity(e.tokens_per_second_per_device, ""); });
  table.row("FLOP per token", "of the model, without recomputation",
            [](const Efficiency& e) { return sourced(e.flops_per_token, "", e.flops_formula); });
  table.row("Peak of a device", "each source that is known", [](const Efficiency& e) {
    if (e.peaks.empty()) return absent(e.peak_source);
    return each_peak(e, [](const Peak& peak) { return number(peak.flops, 4) + " FLOP/s"; });
  });
  table.row(
      "Utilisation (MFU)", "tokens/s × FLOP per token ÷ (devices × peak), of each peak",
      [](const Efficiency& e) {
        if (!e.mfu) return absent();
        return each_peak(
                   e, [](const Peak& peak) { return peak.mfu ? percent(*peak.mfu) : absent(); }) +
               (e.mfu_note.empty() ? "" : element("p", "note", shown(e.mfu_note)));
      });
}

void energy_rows(EfficiencyTable& table) {
  table.row("Energy of the equipment", "joules; method and coverage", [](const Efficiency& e) {
    return e.joules ? sourced(e.joules, "J", e.energy_method) : absent(why_no_energy(e));
  });
  table.row("Coverage", "measured seconds ÷ seconds of all attempts", [](const Efficiency& e) {
    return e.energy_coverage ? percent(*e.energy_coverage) : absent();
  });
  table.row("Energy", "joules ÷ 3.6×10⁶",
            [](const Efficiency& e) { return quantity(e.kwh, "kWh", why_no_energy(e)); });
  table.row("PUE", "stated",
            [](const Efficiency& e) { return sourced(e.cluster.pue, "", e.cluster.pue_source); });
  table.row("Energy of the site", "kWh × PUE",
            [](const Efficiency& e) { return quantity(e.facility_kwh, "kWh"); });
  table.row("Carbon intensity", "stated, by location", [](const Efficiency& e) {
    return sourced(e.cluster.kg_per_kwh, "kg CO₂e/kWh", e.cluster.kg_per_kwh_source);
  });
  table.row("Carbon", "kWh × PUE × intensity",
            [](const Efficiency& e) { return quantity(e.carbon_kg, "kg CO₂e"); });
  if (table.is_known(&Efficiency::carbon_kg_market)) {
    table.row("Carbon intensity, market-based", "stated, of the power that was contracted for",
              [](const Efficiency& e) {
                return sourced(e.cluster.kg_per_kwh_market, "kg CO₂e/kWh",
                               e.cluster.kg_per_kwh_market_source);
              });
    table.row("Carbon, market-based", "kWh × PUE × that intensity",
              [](const Efficiency& e) { return quantity(e.carbon_kg_market, "kg CO₂e"); });
  }
  table.row("Tokens per joule", "tokens ÷ joules, if 90 % of the time was measured",
            [](const Efficiency& e) { return quantity(e.tokens_per_joule, ""); });
  table.row("Device hours", "devices × hours",
            [](const Efficiency& e) { return of_hours(e, e.device_hours, ""); });
  table.row("Price of a device hour", "stated", [](const Efficiency& e) {
    return sourced(e.cluster.price_per_device_hour, e.cluster.currency, e.cluster.price_source);
  });
  table.row("Cost", "device hours × price",
            [](const Efficiency& e) { return of_hours(e, e.cost, e.cluster.currency); });
}

std::string sources_table(std::span<const NamedSide> sides) {
  Table table({{"Source", false},
               {"Side", false},
               {"Host", false},
               {"Device", false},
               {"Covers", false},
               {"Energy", true},
               {"Time", true},
               {"Samples", true},
               {"Note", false}});
  for (const NamedSide& side : sides) {
    if (side.efficiency == nullptr) continue;
    for (const store::EnergyRecord& energy : side.efficiency->sources)
      table.row({shown(energy.source, 60), side_mark(side.letter), shown(energy.host, 80),
                 shown(energy.device, 80), shown(energy.covers, 60),
                 energy.joules ? number(*energy.joules, 5) + " J" : absent(energy.note),
                 energy.seconds ? duration(*energy.seconds) : absent(), count(energy.samples),
                 shown(energy.note, 200)});
  }
  return table.empty() ? note("No source of energy was recorded.")
                       : folded("Sources of energy", table.html());
}

/// Utilisations of peaks that are known in other ways are no comparison.
std::string unlike_peaks(std::span<const NamedSide> sides) {
  std::vector<std::string> sources;
  for (const NamedSide& side : sides)
    if (side.efficiency != nullptr && side.efficiency->mfu)
      sources.push_back(side.efficiency->peak_source);
  if (sources.size() < 2 || sources[0] == sources[1]) return {};
  return note(
      "The peaks of A and B are of two sources, so that their utilisations cannot be set "
      "against each other unless both sources mean the same.");
}

std::string ranks_table(std::span<const NamedSide> sides) {
  Table table({{"Rank", true},
               {"Side", false},
               {"Host", false},
               {"Device", false},
               {"Threads", true},
               {"Data and compute", true},
               {"Waited", true},
               {"Sent", true},
               {"Slowest in", true}});
  for (const NamedSide& side : sides) {
    if (side.efficiency == nullptr || side.efficiency->world.ranks.size() < 2) continue;
    for (const store::RankRecord& rank : side.efficiency->world.ranks) {
      table.row({count(rank.rank), side_mark(side.letter), shown(rank.host, 80),
                 shown(rank.processor.empty() ? rank.device : rank.processor, 80),
                 count(rank.threads), duration(rank.data_seconds + rank.compute_seconds),
                 duration(rank.gather_seconds + rank.exchange_seconds + rank.wait_seconds),
                 count(rank.gathered_bytes + rank.exchanged_bytes) + " bytes",
                 count(rank.slowest_steps) + " of " + count(rank.steps)});
    }
  }
  return table.empty() ? "" : folded("Ranks of the last attempt", table.html());
}

}  // namespace

std::string efficiency_section(std::span<const NamedSide> sides) {
  EfficiencyTable table(sides);
  world_rows(table);
  speed_rows(table);
  energy_rows(table);
  return section("efficiency", "Efficiency, energy and cost",
                 throughput_chart(sides) + table.html() + unlike_peaks(sides) + ranks_table(sides) +
                     sources_table(sides));
}

}  // namespace olmo::report::page
