// Plots of a run, as SVG: one file each, readable on light and dark pages.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "coordinator/sim/figures.h"
#include "coordinator/sim/report.h"

namespace shoal::sim {
namespace {

constexpr double kWidth = 760, kHeight = 380;
constexpr double kLeft = 70, kRight = 20, kTop = 62, kBottom = 48;
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7"};

struct Series {
  std::string name;
  std::vector<double> y;
};

struct Plot {
  std::string title, x_name, y_name;
  std::vector<double> x;
  std::vector<Series> series;
  bool bars = false;                  // The first series only.
  std::vector<std::string> x_labels;  // Of bars; empty texts are left out.
};

std::string format(double value) {
  char text[40];
  const double size = std::abs(value);
  if (size >= 1e6) {
    std::snprintf(text, sizeof text, "%.3gM", value / 1e6);
  } else if (size >= 1e4) {
    std::snprintf(text, sizeof text, "%.3gk", value / 1e3);
  } else {
    std::snprintf(text, sizeof text, "%.4g", value);
  }
  return text;
}

// 1, 2 or 5 times a power of ten: about so many steps up to `most`.
double nice_step(double most, int steps) {
  const double rough = most / steps;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

class Svg {
 public:
  Svg() {
    text_ =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 380\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"760\" height=\"380\" fill=\"#ffffff\"/>\n";
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    add("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1, x2, y2,
        colour);
  }
  void rectangle(double x, double y, double width, double height, const char* colour) {
    add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, width,
        height, colour);
  }
  void label(double x, double y, const char* anchor, const std::string& what,
             const char* more = "") {
    add("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"#333333\" %s>", x, y, anchor, more);
    text_ += what + "</text>\n";  // Only our own texts and numbers.
  }
  void path(const std::vector<std::pair<double, double>>& points, const char* colour) {
    text_ += "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"";
    text_ += colour;
    text_ += "\" points=\"";
    for (const auto& [x, y] : points) add("%.1f,%.1f ", x, y);
    text_ += "\"/>\n";
  }
  std::string finish() { return text_ + "</svg>\n"; }

 private:
  template <class... Values>
  void add(const char* format, Values... values) {
    char piece[300];
    std::snprintf(piece, sizeof piece, format, values...);
    text_ += piece;
  }
  std::string text_;
};

std::string draw(const Plot& plot) {
  double y_most = 0;
  for (const Series& series : plot.series) {
    for (const double y : series.y) y_most = std::max(y_most, y);
  }
  if (y_most <= 0) y_most = 1;
  const double y_step = nice_step(y_most, 5);
  y_most = std::ceil(y_most / y_step) * y_step;
  const double x_most = plot.x.empty() ? 1 : std::max(plot.x.back(), 1e-9);
  const double width = kWidth - kLeft - kRight, height = kHeight - kTop - kBottom;
  const auto at_x = [&](double x) { return kLeft + width * x / x_most; };
  const auto at_y = [&](double y) { return kTop + height * (1 - y / y_most); };

  Svg svg;
  svg.label(kLeft, 22, "start", plot.title, "font-size=\"15\" font-weight=\"bold\"");
  for (double y = 0; y <= y_most + y_step / 2; y += y_step) {
    svg.line(kLeft, at_y(y), kWidth - kRight, at_y(y), y == 0 ? "#333333" : "#dddddd");
    svg.label(kLeft - 8, at_y(y) + 4, "end", format(y));
  }
  svg.label(18, kTop + height / 2, "middle", plot.y_name,
            ("transform=\"rotate(-90 18 " + format(kTop + height / 2) + ")\"").c_str());
  svg.label(kLeft + width / 2, kHeight - 10, "middle", plot.x_name);
  if (plot.bars) {
    const std::vector<double>& y = plot.series[0].y;
    const double step = width / static_cast<double>(std::max<size_t>(y.size(), 1));
    for (size_t i = 0; i < y.size(); ++i) {
      const double x = kLeft + step * static_cast<double>(i);
      svg.rectangle(x + 1, at_y(y[i]), std::max(step - 2, 1.0), at_y(0) - at_y(y[i]), kColours[0]);
      svg.label(x + step / 2, kHeight - kBottom + 18, "middle", plot.x_labels[i]);
    }
    return svg.finish();
  }
  const double x_step = nice_step(x_most, 8);
  for (double x = 0; x <= x_most * 1.001; x += x_step) {
    svg.line(at_x(x), at_y(0), at_x(x), at_y(0) + 4, "#333333");
    svg.label(at_x(x), kHeight - kBottom + 18, "middle", format(x));
  }
  double legend = kLeft;
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const Series& series = plot.series[i];
    std::vector<std::pair<double, double>> points;
    for (size_t k = 0; k < series.y.size(); ++k) {
      points.emplace_back(at_x(plot.x[k]), at_y(series.y[k]));
    }
    svg.path(points, kColours[i % 4]);
    svg.rectangle(legend, 36, 14, 4, kColours[i % 4]);
    svg.label(legend + 20, 42, "start", series.name);
    legend += 44 + 7.0 * static_cast<double>(series.name.size());
  }
  return svg.finish();
}

std::vector<std::pair<std::string, Plot>> make_plots(const Report& report) {
  std::vector<double> hours, on, rate, audit, repeat, lost, pending, lies, confirmed;
  const std::vector<Sample>& samples = report.samples;
  for (size_t i = 6; i < samples.size(); ++i) {  // Over the last hour each.
    const Sample& now = samples[i];
    const Sample& before = samples[i - 6];
    hours.push_back(now.hour);
    on.push_back(static_cast<double>(now.hosts_on));
    rate.push_back((now.flops_done - before.flops_done) / ((now.hour - before.hour) * 3600) / 1e12);
    const Spent spent = now.spent - before.spent;
    const double all = std::max(spent.all(), 1e-9);
    audit.push_back(100 * std::clamp(spent.audit / all, 0.0, 1.0));
    repeat.push_back(100 * std::clamp(spent.repeat / all, 0.0, 1.0));
    lost.push_back(100 * std::clamp(spent.lost / all, 0.0, 1.0));
    pending.push_back(static_cast<double>(now.pending));
    lies.push_back(static_cast<double>(now.lies));
    confirmed.push_back(static_cast<double>(now.lies_confirmed));
  }
  const std::string name(report.options.scenario.name);
  std::vector<std::pair<std::string, Plot>> plots;
  plots.push_back({"throughput",
                   {.title = name + ": confirmed work",
                    .x_name = "hours",
                    .y_name = "TFLOP/s",
                    .x = hours,
                    .series = {{"confirmed, last hour", rate}}}});
  plots.push_back({"hosts",
                   {.title = name + ": who is there",
                    .x_name = "hours",
                    .y_name = "hosts, results",
                    .x = hours,
                    .series = {{"hosts", on}, {"results not yet confirmed", pending}}}});
  plots.push_back(
      {"cost",
       {.title = name + ": what is not useful work",
        .x_name = "hours",
        .y_name = "% of device time",
        .x = hours,
        .series = {{"audits", audit}, {"done twice", repeat}, {"left unfinished", lost}}}});
  plots.push_back({"lies",
                   {.title = name + ": lies",
                    .x_name = "hours",
                    .y_name = "units",
                    .x = hours,
                    .series = {{"told", lies}, {"confirmed", confirmed}}}});
  Plot repairs{.title = name + ": time until lost work is in other hands",
               .x_name = "from ... on",
               .y_name = "units",
               .bars = true};
  Series bars;
  struct Bound {
    double seconds;
    const char* name;
  };
  constexpr Bound kBounds[] = {{0, "0"},        {10, "10 s"},     {60, "1 min"},    {300, "5 min"},
                               {600, "10 min"}, {1200, "20 min"}, {1800, "30 min"}, {3600, "1 h"},
                               {7200, "2 h"},   {21600, "6 h"},   {86400, "1 d"}};
  for (size_t i = 0; i < std::size(kBounds); ++i) {
    double sum = 0;
    const double end = i + 1 < std::size(kBounds) ? kBounds[i + 1].seconds : 1e300;
    for (size_t step = 0; step < report.truth.repairs().steps().size(); ++step) {
      const double seconds = Durations::step_seconds(step);
      if (seconds >= kBounds[i].seconds && seconds < end) {
        sum += static_cast<double>(report.truth.repairs().steps()[step]);
      }
    }
    bars.y.push_back(sum);
    repairs.x_labels.push_back(kBounds[i].name);
  }
  repairs.series = {bars};
  plots.push_back({"repair", repairs});
  return plots;
}

}  // namespace

Result<void> write_plots(const Report& report, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{ErrorCode::kIo, folder.string() + ": " + error.message()};
  for (const auto& [name, plot] : make_plots(report)) {
    const auto path = folder / (std::string(report.options.scenario.name) + "-" + name + ".svg");
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << draw(plot);
    file.close();
    if (!file) return Error{ErrorCode::kIo, path.string() + ": it cannot be written"};
  }
  return {};
}

}  // namespace shoal::sim
