# Shows doxygen the headers' plain comments as its own kind: one before a declaration is its documentation, and so is
# one behind it with the lines that go on below. The first of a file is the file's. "// ---" begins a part of a class.
/^#pragma once/ { print "/// \\file"; next }
/^ *\/\/ ---/ { print; next }
match($0, /^ *\/\//) {
  if (RLENGTH == behind) {
    sub(/\/\//, "///<")
  } else {
    behind = 0
    sub(/\/\//, "///")
    sub(/\/\/\/   /, "///     ")  # an example: doxygen wants it further in
  }
  print
  next
}
{ behind = 0 }
/[;,] +\/\/ / { behind = index($0, "// ") + 1; sub(/\/\/ /, "///< ") }
{ print }
