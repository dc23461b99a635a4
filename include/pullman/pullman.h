// Pullman: reliable tagged messages over datagram NICs. This header includes all of the public API.
#pragma once

#include "pullman/callback_request.h"
#include "pullman/config.h"
#include "pullman/context.h"
#include "pullman/multi_receive.h"
#include "pullman/multi_request.h"
#include "pullman/operations.h"
#include "pullman/rails.h"
#include "pullman/request.h"
#include "pullman/stats.h"
#include "pullman/status.h"
#include "pullman/types.h"
#include "pullman/world.h"
