/* MPI_THREAD_MULTIPLE: threads of a rank that send and receive at once, each with the other rank's thread of its
 * number, and threads that wait in collectives of their own communicators. */
#include <pthread.h>

#include "ranks.h"

enum { kThreads = 4, kTurns = 300, kLargest = 200000 };
static MPI_Comm worlds[kThreads];

static size_t size_of(int turn) {
  return turn % 50 == 49 ? kLargest : (size_t)(turn * 37 % 3000);
}

static void ping_pong(int thread, char* out, char* in) {
  const int other = rank ^ 1;
  for (int turn = 0; turn < kTurns && other < ranks; ++turn) {
    const int tag = thread * 1000 + turn;
    const size_t size = size_of(turn);
    MPI_Status status;
    int count;
    fill(out, size, rank, tag);
    if (rank & 1) {
      MPI_Recv(in, kLargest, MPI_CHAR, other, tag, MPI_COMM_WORLD, &status);
      MPI_Send(out, (int)size, MPI_CHAR, other, tag, MPI_COMM_WORLD);
    } else {
      MPI_Send(out, (int)size, MPI_CHAR, other, tag, MPI_COMM_WORLD);
      MPI_Recv(in, kLargest, MPI_CHAR, other, tag, MPI_COMM_WORLD, &status);
    }
    MPI_Get_count(&status, MPI_CHAR, &count);
    EXPECT((size_t)count == size);
    for (size_t i = 0; i < size; ++i) EXPECT(in[i] == content(other, tag, i));
  }
}

static void everybody_in_a_ring(int thread) {
  for (int turn = 0; turn < kTurns; ++turn) {
    int came, sum;
    const int said = rank * 1000 + turn;
    MPI_Sendrecv(&said, 1, MPI_INT, right_of(rank), 1, &came, 1, MPI_INT, left_of(rank), 1, worlds[thread],
                 MPI_STATUS_IGNORE);
    EXPECT(came == left_of(rank) * 1000 + turn);
    if (turn % 10 != 0) continue;
    MPI_Allreduce(&turn, &sum, 1, MPI_INT, MPI_SUM, worlds[thread]);
    EXPECT(sum == turn * ranks);
  }
}

static void* work(void* number) {
  const int thread = (int)(intptr_t)number;
  char *out = malloc(kLargest), *in = malloc(kLargest);
  ping_pong(thread, out, in);
  everybody_in_a_ring(thread);
  free(out);
  free(in);
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  pthread_t threads[kThreads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  EXPECT(provided == MPI_THREAD_MULTIPLE);
  for (int i = 0; i < kThreads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &worlds[i]);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, (void*)(intptr_t)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&worlds[i]);
  end("many threads");
  return 0;
}
