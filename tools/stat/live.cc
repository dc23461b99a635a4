#include "stat/live.h"

#include <curses.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "stat/grid.h"
#include "stat/report.h"

namespace stat_program {
namespace {

constexpr int kEscape = 27;
constexpr const char* kKeys =
    "q quit   tab, shift-tab another table   <, > sort by another column   r reverse   / filter   "
    "arrows, page up, down scroll   space pause";

class Screen {
 public:
  Screen() : screen_(newterm(nullptr, stdout, stdin)) {
    if (screen_ == nullptr) return;
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    curs_set(0);
    set_escdelay(25);
  }
  ~Screen() {
    if (screen_ == nullptr) return;
    endwin();
    delscreen(screen_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  bool works() const { return screen_ != nullptr; }

 private:
  SCREEN* screen_;
};

// A terminal that was closed is not read from, and never waited for.
bool is_there(int terminal) {
  pollfd watched{.fd = terminal, .events = POLLIN, .revents = 0};
  return poll(&watched, 1, 0) >= 0 && (watched.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

void put(int line, const std::string& text, attr_t look = A_NORMAL) {
  if (line < 0 || line >= LINES) return;
  attrset(look);
  mvaddnstr(line, 0, text.c_str(), COLS);
  attrset(A_NORMAL);
}

class View {
 public:
  View(const Source& source, std::chrono::milliseconds interval)
      : source_(source), interval_(interval) {
    question_.table = "rail";
    question_.descending = true;
  }

  void run() {
    using std::chrono::steady_clock;
    read();
    auto due = steady_clock::now() + interval_;
    while (!quits_ && is_there(STDIN_FILENO)) {
      draw();
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - steady_clock::now());
      timeout(static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
      if (const int key = getch(); key != ERR) handle(key);
      if (steady_clock::now() < due) continue;
      if (!paused_) read();
      due = steady_clock::now() + interval_;
    }
  }

 private:
  void read() {
    std::vector<std::string> problems;
    const std::uint64_t at = now();
    before_ = std::move(all_);
    all_ = read_all(source_, problems);
    seconds_ = read_at_ == 0 ? 0 : age(read_at_, at);
    read_at_ = at;
    problem_ = problems.empty() ? "" : problems.front();
  }

  void handle(int key) {
    const std::vector<std::string> tables = table_names(all_);
    if (types_) return type(key);
    switch (key) {
      case 'q':
        quits_ = true;
        break;
      case '\t':
      case KEY_BTAB:
        if (tables.empty()) break;
        step_table(tables, key == '\t' ? 1 : tables.size() - 1);
        break;
      case '<':
        if (question_.sort > 0) --question_.sort;
        break;
      case '>':
        if (question_.sort + 1 < grid_.names.size()) ++question_.sort;
        break;
      case 'r':
        question_.descending = !question_.descending;
        break;
      case '/':
        types_ = true;
        question_.filter.clear();
        break;
      case ' ':
        paused_ = !paused_;
        break;
      case KEY_DOWN:
        if (first_ + 1 < grid_.rows.size()) ++first_;
        break;
      case KEY_UP:
        if (first_ > 0) --first_;
        break;
      case KEY_NPAGE:
        first_ += page();
        break;
      case KEY_PPAGE:
        first_ -= std::min(first_, page());
        break;
      case KEY_HOME:
        first_ = 0;
        break;
      case KEY_END:
        first_ = grid_.rows.size();
        break;
      case KEY_RIGHT:
        if (left_out_ + 1 < grid_.names.size()) ++left_out_;
        break;
      case KEY_LEFT:
        if (left_out_ > 0) --left_out_;
        break;
      default:
        break;
    }
  }

  void step_table(const std::vector<std::string>& tables, std::size_t by) {
    const auto at = std::find(tables.begin(), tables.end(), question_.table);
    const std::size_t here = at == tables.end() ? 0 : static_cast<std::size_t>(at - tables.begin());
    question_.table = tables[(here + by) % tables.size()];
    question_.sort = 0;
    first_ = 0;
    left_out_ = 0;
  }

  static std::size_t page() { return static_cast<std::size_t>(std::max(LINES / 2, 1)); }

  void type(int key) {
    if (key == '\n' || key == KEY_ENTER) {
      types_ = false;
    } else if (key == kEscape) {
      types_ = false;
      question_.filter.clear();
    } else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
      if (!question_.filter.empty()) question_.filter.pop_back();
    } else if (key >= ' ' && key < 127) {
      question_.filter += static_cast<char>(key);
    }
    first_ = 0;
  }

  void draw() {
    erase();
    grid_ = make_grid(all_, before_, seconds_, question_, read_at_);
    first_ = std::min(first_, std::max<std::size_t>(grid_.rows.size(), 1) - 1);
    std::string head =
        fmt::format("pullman-stat: {} contexts in {}", all_.size(), source_.folder.string());
    if (paused_) head += "  [paused]";
    if (types_ || !question_.filter.empty()) {
      head += fmt::format("  filter: {}{}", question_.filter, types_ ? "_" : "");
    }
    put(0, head, A_BOLD);
    int line = 1;
    const int most = std::max(1, LINES / 3);
    for (const Shown& shown : all_) {
      if (line > most) break;
      put(line++, summary(shown, read_at_));
    }
    if (!problem_.empty()) put(line++, problem_, A_BOLD);
    draw_grid(line + 1);
    put(LINES - 1, kKeys, A_DIM);
    refresh();
  }

  void draw_grid(int line) {
    std::vector<std::size_t> widths;
    for (std::size_t k = 0; k < grid_.names.size(); ++k) {
      std::size_t width = grid_.names[k].size() + 1;
      for (const auto& row : grid_.rows) width = std::max(width, row[k].text.size());
      widths.push_back(width);
    }
    std::string names;
    for (std::size_t k = left_out_; k < widths.size(); ++k) {
      const char* const mark = k != question_.sort ? "" : question_.descending ? "v" : "^";
      names += fmt::format("{:<{}} ", grid_.names[k] + mark, widths[k]);
    }
    put(line++, fmt::format("[{}]", question_.table));
    put(line++, fmt::format("{:<{}}", names, std::max(COLS, 1)), A_REVERSE);
    for (std::size_t i = first_; i < grid_.rows.size() && line < LINES - 1; ++i) {
      std::string text;
      for (std::size_t k = left_out_; k < widths.size(); ++k) {
        const GridCell& cell = grid_.rows[i][k];
        text += cell.is_number ? fmt::format("{:>{}} ", cell.text, widths[k])
                               : fmt::format("{:<{}} ", cell.text, widths[k]);
      }
      put(line++, text);
    }
  }

  const Source& source_;
  const std::chrono::milliseconds interval_;
  std::vector<Shown> all_;
  std::vector<Shown> before_;
  std::uint64_t read_at_ = 0;
  double seconds_ = 0;
  std::string problem_;
  Grid grid_;
  GridQuestion question_;
  std::size_t first_ = 0;     // row that is shown
  std::size_t left_out_ = 0;  // columns at the left
  bool types_ = false;        // the filter is being typed
  bool paused_ = false;
  bool quits_ = false;
};

}  // namespace

bool show_live(const Source& source, std::chrono::milliseconds interval) {
  const Screen screen;
  if (!screen.works()) return false;
  View(source, interval).run();
  return true;
}

}  // namespace stat_program
