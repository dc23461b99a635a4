// Draws a graph with Graphviz. That is its program `dot`, and not its library, so that only people
// that want a picture need it. The colours (Okabe and Ito's, the red darker) go together, and
// differ in brightness for people that do not see red or green.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace info {

inline constexpr std::string_view kFine = "#0072b2";
inline constexpr std::string_view kDegraded = "#e69f00";
inline constexpr std::string_view kBroken = "#c1272d";
inline constexpr std::string_view kUnknown = "#6f7680";
inline constexpr std::string_view kInk = "#1f2933";
inline constexpr std::string_view kFaint = "#52606d";

// Returns what a graph begins with: a white ground, so that its text is legible where pages are
// dark, too, one font, and a title, which may have lines of smaller text below.
std::string head_of_graph(std::string_view title, const std::vector<std::string>& below = {});

// Returns the text as it stands in a label between < and >: at most `most` characters of printable
// ASCII; what a peer or a file says may be anything.
std::string in_label(std::string_view text, std::size_t most = 200);

// Numbers in names count as numbers: eth2 comes before eth10.
bool comes_before(const std::string& one, const std::string& other);

// Breaks a text into lines of about that width, as a label has them, each at the left.
std::string wrapped(std::string_view text, std::size_t width);

// Writes the picture of a graph in the DOT language to the file, as SVG. Throws std::runtime_error
// if Graphviz is not there, or the file cannot be written; it is only touched if there is a
// picture.
void draw(const std::string& graph, const std::string& file);

}  // namespace info
