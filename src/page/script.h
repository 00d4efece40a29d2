// What the pages do under a reader's hands. All of them are whole without it.
#pragma once

namespace olmo::page {

// The parts of script() of page/html.h. A chart's curves and its readout; tables with more than a few rows.
const char* charts_script();
const char* tables_script();

/// For a page of curves (serve/curves.h), after script(): finer bins where a reader zooms in,
/// smoothing, other axes, runs that are hidden or compared with one, and new steps while a training
/// writes them.
const char* curves_script();

}  // namespace olmo::page
