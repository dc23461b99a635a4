// What the libraries behind libfabric do to a program's signals, undone.
#pragma once

namespace pullman::nic::fabric {

// Gives SIGINT, SIGTERM, SIGABRT and the like back to the program where libinfinipath has taken
// them, which it does when it is loaded, used or not. Its handler prints a backtrace and calls
// exit(): a program that was told to stop while libfabric looked for devices waited for
// libfabric's own lock for ever, and one that aborted ran its destructors and left no core. A
// handler that the program has set is not touched. Cheap, and may be called again.
void give_back_signals();

}  // namespace pullman::nic::fabric
