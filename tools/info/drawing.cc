#include "info/drawing.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace info {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void fail(std::string_view what, int error) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(error)));
}

// What dot reads and writes has no name, and lies in files and not in pipes, so that neither of us
// waits for the other.
OpenFile temporary_file() {
  OpenFile file(std::tmpfile());
  if (file == nullptr) fail("there is no temporary file to be had", errno);
  return file;
}

void write_all(std::FILE* file, std::string_view text, const std::string& name) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0) {
    fail("cannot write " + name, errno);
  }
}

std::string read_all(std::FILE* file) {
  std::string out;
  std::array<char, 1 << 16> part{};
  std::rewind(file);
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), file)) {
    out.append(part.data(), count);
  }
  return out;
}

// Returns how it ended, as waitpid() has it.
int run_dot(std::FILE* input, std::FILE* output) {
  std::string words[] = {"dot", "-q", "-Tsvg"};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, fileno(input), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, fileno(output), STDOUT_FILENO);
  pid_t child = -1;
  const int error = posix_spawnp(&child, arguments[0], &files, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  if (error == ENOENT) {
    throw std::runtime_error(
        "pictures are drawn by Graphviz, and there is no program 'dot': apt install graphviz");
  }
  if (error != 0) fail("Graphviz ('dot') cannot be started", error);
  int result = 0;
  while (waitpid(child, &result, 0) < 0) {
    if (errno != EINTR) fail("Graphviz ('dot') cannot be waited for", errno);
  }
  return result;
}

}  // namespace

std::string head_of_graph(std::string_view title, const std::vector<std::string>& below) {
  std::string lines;
  if (!below.empty()) lines = "<font point-size=\"7\"> </font><br align=\"left\"/>";
  for (const std::string& line : below) {
    lines += fmt::format("<font point-size=\"12\">{}</font><br align=\"left\"/>", in_label(line));
  }
  return fmt::format(
      "digraph pullman {{\n"
      "graph [bgcolor=white, pad=0.3, rankdir=LR, ranksep=1.6, nodesep=0.25, labelloc=t, "
      "labeljust=l, fontname=\"Helvetica,Arial,sans-serif\", fontsize=16, fontcolor=\"{0}\", "
      "label=<<b>{1}</b><br align=\"left\"/>{2}>]\n"
      "node [shape=plain, fontname=\"Helvetica,Arial,sans-serif\", fontsize=12, "
      "fontcolor=\"{0}\"]\n"
      "edge [fontname=\"Helvetica,Arial,sans-serif\", fontsize=11, fontcolor=\"{0}\", "
      "arrowhead=none, penwidth=2.2]\n",
      kInk, in_label(title), lines);
}

std::string in_label(std::string_view text, std::size_t most) {
  std::string out;
  for (const char letter : text.substr(0, most)) {
    switch (letter) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\\':
        out += "\\\\";  // \N would be the node's name
        break;
      default:
        out += letter < ' ' || letter > '~' ? '?' : letter;
    }
  }
  return text.size() > most ? out + "..." : out;
}

bool comes_before(const std::string& one, const std::string& other) {
  return strverscmp(one.c_str(), other.c_str()) < 0;
}

std::string wrapped(std::string_view text, std::size_t width) {
  std::string out;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (end > width) {
      end = text.rfind(' ', width);
      if (end == std::string_view::npos || end == 0) end = std::min(text.find(' '), text.size());
    }
    // Fonts differ in width, and a renderer may not have the one that was measured.
    out += in_label(text.substr(0, end)) + "&#160;&#160;&#160;<br align=\"left\"/>";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

void draw(const std::string& graph, const std::string& file) {
  const OpenFile input = temporary_file();
  write_all(input.get(), graph, "a temporary file");
  std::rewind(input.get());
  const OpenFile output = temporary_file();
  const int result = run_dot(input.get(), output.get());
  const std::string picture = read_all(output.get());
  if (!WIFEXITED(result) || WEXITSTATUS(result) != 0 || picture.empty()) {
    throw std::runtime_error(
        "Graphviz ('dot') has failed: is it complete? dot -V says which it is");
  }
  const OpenFile out(std::fopen(file.c_str(), "w"));
  if (out == nullptr) fail("cannot write " + file, errno);
  write_all(out.get(), picture, file);
}

}  // namespace info
