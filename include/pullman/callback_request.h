// A request that calls the program when it is done.
//
//   pullman::CallbackRequest question(context, [&](pullman::CallbackRequest& done) {
//     if (done.status() == pullman::Status::kOk) context.send(done.source(), 8, bytes, answer);
//   });
//   context.receive(pullman::kAnyPeer, 7, 0, bytes, question);
//   for (;;) context.progress();
//
// Each time the request becomes done its callback is called once: after a turn of progress(),
// test(), wait(), wait_for_arrival(), prepare_wait(), check_rails() or close(), and never in the
// call that started the operation, which may end it at once. An operation that did not begin
// (kBusy) calls nothing.
//
// The callback may do all that the program may: send, receive, wait, disconnect or abandon the
// peer, close the context, use the request again or destroy it. It may not destroy the context. A
// callback that waits keeps the others of its context waiting. An exception leaves the call that
// made it, and what other callbacks are due are called next time; where the destructor of the
// context calls, or the library's thread, it ends the process.
//
// Ownership: as a Request. It may be used again by its callback, or after that; so may the memory
// of the operation. If a request that is done is destroyed before its callback was called, that is
// not called any more. Do not test() or wait() for a request that its callback uses again or
// destroys.
//
// Threads: as the context. With Config::threads kMany any thread that makes such a call may call
// back, so callbacks may run at the same time: of different requests, and of one request from the
// moment its callback uses it again, which should be the last that it does. No other thread may
// destroy a request before its callback has returned. With Config::progress kThread the library's
// own thread calls as well.
#pragma once

#include <functional>
#include <memory>

#include "pullman/request.h"

namespace pullman {

class Context;

// A request with a callback of the program's.
class __attribute__((visibility("default"))) CallbackRequest : public Request {
 public:
  // Is called with the request that is done.
  using Callback = std::function<void(CallbackRequest& done)>;

  // For operations of that context only.
  CallbackRequest(Context& context, Callback callback);
  ~CallbackRequest();

  // The library's state of the callback. Defined in the library only.
  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace pullman
