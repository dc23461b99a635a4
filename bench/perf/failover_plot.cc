#include "failover_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace perf {

namespace {

constexpr double kWidth = 820, kHeight = 360;
constexpr double kLeft = 60, kRight = 800, kTop = 46, kBottom = 316;
// More points than pixels are averaged.
constexpr std::size_t kMaxPoints = 1480;
constexpr std::array<const char*, 5> kColours = {"#2060c0", "#208040", "#a06010", "#8040a0",
                                                 "#20a0d0"};
constexpr const char* kMainColour = "#c02020";

// Of a scale whose greatest value is `most`: some five steps, each 1, 2 or 5 times a power of ten.
double step_of(double most) {
  const double power = std::pow(10.0, std::floor(std::log10(most / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor * 5.5 >= most) return power * factor;
  }
  return power * 10;
}

class Canvas {
 public:
  Canvas(double max_ms, double max_value) : max_ms_(max_ms), max_value_(max_value) {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
        kWidth, kHeight);
  }

  double x(double ms) const { return kLeft + (kRight - kLeft) * std::min(1.0, ms / max_ms_); }
  double y(double value) const { return kBottom - (kBottom - kTop) * value / max_value_; }

  void band(const Band& band) {
    const double from = x(band.from_ms), width = std::max(1.0, x(band.to_ms) - from);
    text_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"#f4d8d8\">"
        "<title>{}</title></rect>\n",
        from, kTop, width, kBottom - kTop, band.name);
  }

  void axes() {
    for (double value = 0; value <= max_value_ * 1.001; value += step_of(max_value_)) {
      line(kLeft, y(value), kRight, y(value));
      label(kLeft - 6, y(value) + 4, "end", fmt::format("{:.3g}", value));
    }
    for (double ms = 0; ms <= max_ms_ * 1.001; ms += step_of(max_ms_)) {
      line(x(ms), kTop, x(ms), kBottom);
      label(x(ms), kBottom + 16, "middle", fmt::format("{:.4g}", ms / 1e3));
    }
    label(kRight, kHeight - 10, "end", "seconds");
    label(kLeft - 44, kTop - 8, "start", "Gb/s");
  }

  void curve(const Curve& curve, double step_ms, const char* colour, double width) {
    const std::size_t stride = (curve.values.size() + kMaxPoints - 1) / kMaxPoints;
    text_ += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" points=\"",
                         colour, width);
    for (std::size_t i = 0; i < curve.values.size(); i += stride) {
      const std::size_t past = std::min(i + stride, curve.values.size());
      double sum = 0;
      for (std::size_t j = i; j < past; ++j) sum += curve.values[j];
      const double middle = static_cast<double>(i + past) / 2 * step_ms;
      text_ += fmt::format("{:.1f},{:.1f} ", x(middle), y(sum / static_cast<double>(past - i)));
    }
    text_ += "\"/>\n";
  }

  void legend(std::size_t index, const std::string& name, const char* colour) {
    const double at = kLeft + 40 + 170 * static_cast<double>(index);
    text_ += fmt::format(
        "<line x1=\"{}\" y1=\"20\" x2=\"{}\" y2=\"20\" stroke=\"{}\" stroke-width=\"3\"/>\n", at,
        at + 18, colour);
    label(at + 24, 24, "start", name);
  }

  std::string finish() { return std::move(text_) + "</svg>\n"; }

 private:
  void line(double x1, double y1, double x2, double y2) {
    text_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n", x1,
        y1, x2, y2);
  }

  void label(double at_x, double at_y, const char* anchor, const std::string& words) {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at_x,
                         at_y, anchor, words);
  }

  double max_ms_;
  double max_value_;
  std::string text_;
};

}  // namespace

std::string to_svg(const Drawing& drawing) {
  double most = 0.001;
  std::size_t steps = 1;
  for (const Curve& curve : drawing.curves) {
    steps = std::max(steps, curve.values.size());
    for (const double value : curve.values) most = std::max(most, value);
  }
  Canvas canvas(static_cast<double>(steps) * drawing.step_ms, most);
  for (const Band& band : drawing.bands) canvas.band(band);
  canvas.axes();
  for (std::size_t i = 0; i < drawing.curves.size(); ++i) {
    const bool main = i + 1 == drawing.curves.size();
    const char* colour = main ? kMainColour : kColours[i % kColours.size()];
    canvas.curve(drawing.curves[i], drawing.step_ms, colour, main ? 1.6 : 1.1);
    canvas.legend(i, drawing.curves[i].name, colour);
  }
  return canvas.finish();
}

}  // namespace perf
