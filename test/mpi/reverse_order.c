/* The progress rule of MPI: a receive completes once its send has begun, whatever else was sent
 * before. All others send rank 0 many short messages, a tag each; it takes them in reverse order,
 * first by their source, then from anybody. */
#include "ranks.h"

enum { kLongest = 16 };

static int size_for(int tag) {
  return 1 + tag % kLongest;
}

static void take(int source, int tag, int from) {
  char in[kLongest];
  MPI_Status status;
  int count;
  MPI_Recv(in, kLongest, MPI_CHAR, source, tag, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_CHAR, &count);
  EXPECT(status.MPI_TAG == tag && count == size_for(tag));
  EXPECT(from == MPI_ANY_SOURCE || status.MPI_SOURCE == from);
  if (from == MPI_ANY_SOURCE) {
    EXPECT(in[0] == content(status.MPI_SOURCE, tag, 0));
  } else {
    EXPECT(is_filled(in, (size_t)count, from, tag));
  }
}

static void send_all(int messages) {
  for (int tag = 0; tag < messages; ++tag) {
    char out[kLongest];
    fill(out, (size_t)size_for(tag), rank, tag);
    MPI_Send(out, size_for(tag), MPI_CHAR, 0, tag, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int messages = argc > 1 ? atoi(argv[1]) : 6000;
  const int from_anybody = argc > 2 ? atoi(argv[2]) : 500;
  if (rank != 0) {
    send_all(messages);
  } else {
    for (int from = ranks - 1; from > 0; --from) {
      for (int tag = messages - 1; tag >= 0; --tag) take(from, tag, from);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) {
    send_all(from_anybody);
  } else {
    for (int tag = from_anybody - 1; tag >= 0; --tag) {
      for (int i = 1; i < ranks; ++i) take(MPI_ANY_SOURCE, tag, MPI_ANY_SOURCE);
    }
  }
  end("reverse_order");
}
