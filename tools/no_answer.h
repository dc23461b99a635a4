// What to say of a process that does not answer.
#pragma once

inline constexpr const char* kNoAnswer =
    "no answer: does a process listen at that very address and port (pullman-info there says which "
    "it has), by the same driver? Does a filter drop it?";
