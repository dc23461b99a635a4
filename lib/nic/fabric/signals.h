// Undoes what the libraries behind libfabric do to a program's signals.
#pragma once

namespace pullman::nic::fabric {

// Gives SIGINT, SIGTERM, SIGABRT and the like back to the program where libinfinipath has taken
// them, which it does when it is loaded, used or not. Its handler prints a backtrace and calls
// exit(): so a program that was stopped while libfabric looked for devices waited for libfabric's
// own lock for ever, and one that aborted ran its destructors and left no core. Leaves handlers
// alone that the program has set. Cheap, and may be called again.
void give_back_signals();

}  // namespace pullman::nic::fabric
