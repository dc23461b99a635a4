/* Point to point in every mode: standard, synchronous, buffered, ready; blocking, not, persistent; any
 * source and tag; probes, matched probes and cancelling; derived types; every rank with every other. */
#include <string.h>

#include "ranks.h"

static const size_t kSizes[] = {0, 1, 8, 100, 1000, 1024, 1025, 5000, 65536, 100000, 1 << 20, 3000001};
enum { kNumber = sizeof kSizes / sizeof kSizes[0], kLargest = 3000001 };

static char *out, *in;

static void ring_of_every_size(void) {
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
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

static void persistent_requests(void) {
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  MPI_Request both[2];
  MPI_Send_init(out, 10000, MPI_CHAR, right, 5, MPI_COMM_WORLD, &both[0]);
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

static void wildcards_keep_each_senders_order(void) {
  enum { kEach = 200 };
  if (rank == 0) {
    int* next = calloc((size_t)ranks, sizeof *next);
    for (int i = 0; i < kEach * (ranks - 1); ++i) {
      int number;
      MPI_Status status;
      MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      EXPECT(number == next[status.MPI_SOURCE]);
      EXPECT(status.MPI_TAG == 2000 + number);
      ++next[status.MPI_SOURCE];
    }
    free(next);
  } else {
    for (int i = 0; i < kEach; ++i) MPI_Send(&i, 1, MPI_INT, 0, 2000 + i, MPI_COMM_WORLD);
  }
}

static void unexpected_messages_in_reverse(void) {
  enum { kEach = 64, kSize = 20000 };
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
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
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
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

static void derived_types(void) {
  enum { kRows = 500, kColumns = 40 };
  static int matrix[kRows][kColumns], column[kRows];
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  MPI_Datatype type;
  MPI_Type_vector(kRows, 1, kColumns, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < kRows; ++i) matrix[i][3] = rank * 1000 + i;
  MPI_Sendrecv(&matrix[0][3], 1, type, right, 11, column, kRows, MPI_INT, left, 11, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < kRows; ++i) EXPECT(column[i] == left * 1000 + i);
  MPI_Type_free(&type);
}

static void matched_probes_take_the_message_away(void) {
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  MPI_Request sent;
  MPI_Message message;
  MPI_Status status;
  fill(out, 5000, rank, 21);
  MPI_Isend(out, 5000, MPI_CHAR, right, 21, MPI_COMM_WORLD, &sent);
  MPI_Mprobe(left, 21, MPI_COMM_WORLD, &message, &status);
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
  wildcards_keep_each_senders_order();
  MPI_Barrier(MPI_COMM_WORLD);
  unexpected_messages_in_reverse();
  probes_tell_what_comes();
  cancelled_receives_take_nothing();
  derived_types();
  if (argc > 1 && strcmp(argv[1], "matched") == 0) matched_probes_take_the_message_away();
  end("point to point");
  return 0;
}
