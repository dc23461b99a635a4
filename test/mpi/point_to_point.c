/* Point to point in every mode: standard, synchronous, buffered, ready; blocking, not, persistent; any
 * source and tag; probes, matched probes and cancelling. */
#include "ranks.h"

static const size_t kSizes[] = {0, 1, 8, 100, 1000, 1024, 1025, 5000, 65536, 100000, 1 << 20, 3000001};
enum { kNumber = sizeof kSizes / sizeof kSizes[0], kLargest = 3000001 };

static char *out, *in;

static void ring_of_every_size(void) {
  const int right = right_of(rank), left = left_of(rank);
  for (int i = 0; i < kNumber; ++i) {
    MPI_Status status;
    int count;
    fill(out, kSizes[i], rank, i);
    MPI_Sendrecv(out, (int)kSizes[i], MPI_CHAR, right, i, in, kLargest, MPI_CHAR, left, i,
                 MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    EXPECT((size_t)count == kSizes[i]);
    EXPECT(status.MPI_SOURCE == left && status.MPI_TAG == i);
    EXPECT(is_filled(in, kSizes[i], left, i));
  }
}

static void send_in_mode(int mode, int to, size_t size, int tag) {
  MPI_Request request;
  fill(out, size, rank, tag);
  switch (mode) {
    case 0: MPI_Send(out, (int)size, MPI_CHAR, to, tag, MPI_COMM_WORLD); return;
    case 1: MPI_Ssend(out, (int)size, MPI_CHAR, to, tag, MPI_COMM_WORLD); return;
    case 2: MPI_Bsend(out, (int)size, MPI_CHAR, to, tag, MPI_COMM_WORLD); return;
    case 3: MPI_Rsend(out, (int)size, MPI_CHAR, to, tag, MPI_COMM_WORLD); return;
    case 4: MPI_Isend(out, (int)size, MPI_CHAR, to, tag, MPI_COMM_WORLD, &request); break;
    case 5: MPI_Issend(out, (int)size, MPI_CHAR, to, tag, MPI_COMM_WORLD, &request); break;
    case 6: MPI_Ibsend(out, (int)size, MPI_CHAR, to, tag, MPI_COMM_WORLD, &request); break;
    default: MPI_Irsend(out, (int)size, MPI_CHAR, to, tag, MPI_COMM_WORLD, &request); break;
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void pairs_in_every_mode(void) {
  const int other = rank ^ 1;
  if (other >= ranks) return;
  for (int mode = 0; mode < 8; ++mode) {
    for (int i = 0; i < kNumber; ++i) {
      const int tag = 1000 + mode * 100 + i;
      for (int turn = 0; turn < 2; ++turn) {
        if ((rank & 1) == turn) {
          /* Ready modes: the receive is posted when this word comes. */
          MPI_Recv(NULL, 0, MPI_CHAR, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          send_in_mode(mode, other, kSizes[i], tag);
        } else {
          MPI_Request request;
          MPI_Irecv(in, kLargest, MPI_CHAR, other, tag, MPI_COMM_WORLD, &request);
          MPI_Send(NULL, 0, MPI_CHAR, other, 7, MPI_COMM_WORLD);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
          EXPECT(is_filled(in, kSizes[i], other, tag));
        }
      }
    }
  }
}

typedef int Init(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

static void persistent_requests(void) {
  /* Not MPI_Bsend_init: Open MPI 4.1.4 starts it again with the first time's content (pml cm, whatever the provider). */
  static Init* const modes[] = {MPI_Send_init, MPI_Ssend_init};
  const int right = right_of(rank), left = left_of(rank);
  for (size_t mode = 0; mode < sizeof modes / sizeof modes[0]; ++mode) {
    MPI_Request both[2];
    modes[mode](out, 10000, MPI_CHAR, right, 5, MPI_COMM_WORLD, &both[0]);
    MPI_Recv_init(in, 10000, MPI_CHAR, left, 5, MPI_COMM_WORLD, &both[1]);
    for (int turn = 0; turn < 20; ++turn) {
      fill(out, 10000, rank, turn);
      MPI_Startall(2, both);
      MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
      EXPECT(is_filled(in, 10000, left, turn));
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
  }
}

/* A large message goes in parts, each with a persistent request of its own; the other side takes the parts as they
 * come, by any tag of that source. */
static void a_partitioned_message_into_wildcards(void) {
  enum { kParts = 32, kPart = 30000, kTurns = 4 };
  const int right = right_of(rank), left = left_of(rank);
  MPI_Request sent[kParts], received[kParts];
  char *whole = malloc(kParts * kPart), *came = malloc(kParts * kPart);
  for (int i = 0; i < kParts; ++i) {
    MPI_Send_init(whole + i * kPart, kPart, MPI_CHAR, right, 4000 + i, MPI_COMM_WORLD, &sent[i]);
    MPI_Recv_init(came + i * kPart, kPart, MPI_CHAR, left, MPI_ANY_TAG, MPI_COMM_WORLD, &received[i]);
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    MPI_Startall(kParts, received);
    for (int i = 0; i < kParts; ++i) {
      const int part = (i * 7 + turn) % kParts;
      fill(whole + part * kPart, kPart, rank, 4000 + part);
      MPI_Start(&sent[part]);
    }
    MPI_Status came_as[kParts];
    for (int left_over = kParts; left_over > 0; --left_over) {
      MPI_Status status;
      int which;
      MPI_Waitany(kParts, received, &which, &status);
      came_as[which] = status;
    }
    for (int i = 0; i < kParts; ++i) {
      /* The receives match in the order they were started, the parts in that in which they were sent. */
      EXPECT(came_as[i].MPI_TAG == 4000 + (i * 7 + turn) % kParts);
      EXPECT(is_filled(came + i * kPart, kPart, left, came_as[i].MPI_TAG));
    }
    MPI_Waitall(kParts, sent, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 0; i < kParts; ++i) {
    MPI_Request_free(&sent[i]);
    MPI_Request_free(&received[i]);
  }
  free(whole);
  free(came);
}

static void wildcards_keep_each_senders_order(int any_tag) {
  enum { kEach = 200 };
  if (rank == 0) {
    int* next = calloc((size_t)ranks, sizeof *next);
    for (int i = 0; i < kEach * (ranks - 1); ++i) {
      int number;
      MPI_Status status;
      MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, any_tag ? MPI_ANY_TAG : 2000, MPI_COMM_WORLD, &status);
      EXPECT(number == next[status.MPI_SOURCE]);
      EXPECT(status.MPI_TAG == 2000 + any_tag * number);
      ++next[status.MPI_SOURCE];
    }
    free(next);
  } else {
    for (int i = 0; i < kEach; ++i) MPI_Send(&i, 1, MPI_INT, 0, 2000 + any_tag * i, MPI_COMM_WORLD);
  }
}

static void unexpected_messages_in_reverse(void) {
  enum { kEach = 64, kSize = 20000 };
  const int right = right_of(rank), left = left_of(rank);
  MPI_Request sent[kEach];
  char* all = malloc((size_t)kEach * kSize);
  for (int i = 0; i < kEach; ++i) {
    fill(all + (size_t)i * kSize, kSize, rank, i);
    MPI_Isend(all + (size_t)i * kSize, kSize, MPI_CHAR, right, 3000 + i, MPI_COMM_WORLD, &sent[i]);
  }
  for (int i = kEach - 1; i >= 0; --i) {
    MPI_Recv(in, kSize, MPI_CHAR, left, 3000 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(is_filled(in, kSize, left, i));
  }
  MPI_Waitall(kEach, sent, MPI_STATUSES_IGNORE);
  free(all);
}

static void probes_tell_what_comes(void) {
  const int right = right_of(rank), left = left_of(rank);
  MPI_Request sent;
  MPI_Status status;
  int count, found = 0;
  fill(out, 777, rank, 9);
  MPI_Isend(out, 777, MPI_CHAR, right, 9, MPI_COMM_WORLD, &sent);
  MPI_Probe(left, 9, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_CHAR, &count);
  EXPECT(count == 777 && status.MPI_SOURCE == left);
  MPI_Iprobe(left, 4242, MPI_COMM_WORLD, &found, &status);
  EXPECT(!found);
  MPI_Recv(in, 777, MPI_CHAR, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT(is_filled(in, 777, left, 9));
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

static void cancelled_receives_take_nothing(void) {
  MPI_Request request;
  MPI_Status status;
  int cancelled = 0;
  MPI_Irecv(in, 10, MPI_CHAR, MPI_ANY_SOURCE, 31313, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  EXPECT(cancelled);
}

/* Whichever wins, the message is received once: by the receive that was to be cancelled, or by the next one. */
static void a_cancelled_receive_loses_no_message(void) {
  const int right = right_of(rank), left = left_of(rank);
  for (int turn = 0; turn < 200; ++turn) {
    MPI_Request request;
    MPI_Status status;
    int cancelled;
    MPI_Irecv(in, 100, MPI_CHAR, left, 32, MPI_COMM_WORLD, &request);
    fill(out, 100, rank, turn);
    MPI_Send(out, 100, MPI_CHAR, right, 32, MPI_COMM_WORLD);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (cancelled) MPI_Recv(in, 100, MPI_CHAR, left, 32, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(is_filled(in, 100, left, turn));
  }
}

static void a_message_that_is_too_long_is_an_error(void) {
  const int right = right_of(rank), left = left_of(rank);
  MPI_Request sent;
  int class = MPI_SUCCESS;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Isend(out, 100, MPI_CHAR, right, 33, MPI_COMM_WORLD, &sent);
  const int error = MPI_Recv(in, 50, MPI_CHAR, left, 33, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Error_class(error, &class);
  EXPECT(class == MPI_ERR_TRUNCATE);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void matched_probes_choose_among_many(void) {
  enum { kEach = 40 };
  const int right = right_of(rank), left = left_of(rank);
  MPI_Request sent[kEach], received[kEach];
  char* all = malloc(2 * kEach * 3000);
  char* came = all + kEach * 3000;
  for (int i = 0; i < kEach; ++i) {
    fill(all + i * 3000, 3000, rank, i);
    MPI_Isend(all + i * 3000, 3000, MPI_CHAR, right, 5000 + i, MPI_COMM_WORLD, &sent[i]);
  }
  for (int i = kEach - 1; i >= 0; --i) {
    MPI_Message message;
    MPI_Status status;
    int found = 0;
    while (!found) MPI_Improbe(MPI_ANY_SOURCE, 5000 + i, MPI_COMM_WORLD, &found, &message, &status);
    EXPECT(status.MPI_SOURCE == left && status.MPI_TAG == 5000 + i);
    MPI_Imrecv(came + i * 3000, 3000, MPI_CHAR, &message, &received[i]);
  }
  MPI_Waitall(kEach, received, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kEach; ++i) EXPECT(is_filled(came + i * 3000, 3000, left, i));
  MPI_Waitall(kEach, sent, MPI_STATUSES_IGNORE);
  free(all);
}

static void matched_probes_take_the_message_away(void) {
  const int right = right_of(rank), left = left_of(rank);
  MPI_Request sent;
  MPI_Message message;
  MPI_Status status;
  fill(out, 5000, rank, 21);
  MPI_Isend(out, 5000, MPI_CHAR, right, 21, MPI_COMM_WORLD, &sent);
  MPI_Mprobe(left, 21, MPI_COMM_WORLD, &message, &status);
  int found = 1;
  MPI_Iprobe(left, 21, MPI_COMM_WORLD, &found, &status);
  EXPECT(!found);
  MPI_Mrecv(in, 5000, MPI_CHAR, &message, &status);
  EXPECT(is_filled(in, 5000, left, 21));
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  out = malloc(kLargest);
  in = malloc(kLargest);
  const int room = kLargest + MPI_BSEND_OVERHEAD;
  char* attached = malloc((size_t)room);
  MPI_Buffer_attach(attached, room);
  ring_of_every_size();
  pairs_in_every_mode();
  persistent_requests();
  a_partitioned_message_into_wildcards();
  for (int any_tag = 0; any_tag < 2; ++any_tag) {
    wildcards_keep_each_senders_order(any_tag);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  unexpected_messages_in_reverse();
  probes_tell_what_comes();
  cancelled_receives_take_nothing();
  a_cancelled_receive_loses_no_message();
  a_message_that_is_too_long_is_an_error();
  matched_probes_take_the_message_away();
  matched_probes_choose_among_many();
  end("point to point");
  return 0;
}
