// The files of this folder, which the binary carries: how the pages look, and what they do under a
// reader's hands. All pages are whole without the scripts.
#pragma once

namespace olmo::page {

/// Of every page: for screen (light and dark), phone and A4.
const char* style_css();
/// Of every page: zoom, axes and readout of the charts.
const char* charts_js();
/// Of every page, after charts_js(): tables that can be sorted and filtered.
const char* tables_js();

/// Of pages that are served, after style_css().
const char* site_css();
/// Of pages that are served, after tables_js(): parts that are fetched again.
const char* site_js();
/// Of the page of curves (serve/curves.h), after tables_js(): finer bins where a reader zooms in,
/// smoothing, other axes, runs that are hidden or compared with one, and new steps while a training
/// writes them.
const char* curves_js();

}  // namespace olmo::page
