// What nearly every test includes and no test changes, compiled once a program: Catch's single
// header costs more than most tests (docs/testing.md). Guards, since the compiler warns of #pragma
// once in what it compiles by itself.
#ifndef PULLMAN_TEST_PCH_TESTS_H
#define PULLMAN_TEST_PCH_TESTS_H

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#endif
