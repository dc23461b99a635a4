// What a call that refuses an option says.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "pullman/status.h"

namespace pullman {

// Returns the sentence of the call's Error, or nothing if it throws none.
template <typename Call>
std::string complaint_of(Call call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    CHECK(error.status() == Status::kBadOption);
    return error.what();
  }
}

}  // namespace pullman
