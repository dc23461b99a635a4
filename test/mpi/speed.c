/* Speed between ranks 0 and 1, of messages of every size:
 *
 *   speed PATTERN MILLISECONDS SIZE...
 *
 * PATTERN: pingpong, sendrecv (both send at once), or put, get, send: one side only, windows of 16 messages, then
 * a word back (put and get in a window of MPI's). Rank 0 says: PATTERN SIZE MICROSECONDS, of half a round trip or
 * of a message. */
#include <string.h>

#include "ranks.h"

enum { kWindow = 16 };
static char *out, *in;
static MPI_Win window;

static void pingpong(int size, int turns) {
  for (int i = 0; i < turns; ++i) {
    if (rank == 0) MPI_Send(out, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(in, size, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  }
}

static void sendrecv(int size, int turns) {
  for (int i = 0; i < turns; ++i) {
    MPI_Sendrecv(out, size, MPI_CHAR, 1 - rank, 1, in, size, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void send_windows(int size, int turns) {
  for (int done = 0; done < turns; done += kWindow) {
    MPI_Request requests[kWindow];
    for (int i = 0; i < kWindow; ++i) {
      if (rank == 0) {
        MPI_Isend(out, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[i]);
      } else {
        MPI_Irecv(in, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]);
      }
    }
    MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
    if (rank == 1) MPI_Send(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(NULL, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void one_sided(int size, int turns, int is_put) {
  for (int done = 0; rank == 0 && done < turns; done += kWindow) {
    for (int i = 0; i < kWindow; ++i) {
      if (is_put) {
        MPI_Put(out, size, MPI_CHAR, 1, 0, size, MPI_CHAR, window);
      } else {
        MPI_Get(in, size, MPI_CHAR, 1, 0, size, MPI_CHAR, window);
      }
    }
    MPI_Win_flush(1, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void put(int size, int turns) {
  one_sided(size, turns, 1);
}

static void get(int size, int turns) {
  one_sided(size, turns, 0);
}

typedef void Pattern(int size, int turns);

static Pattern* pattern_called(const char* name) {
  static const struct {
    const char* name;
    Pattern* run;
  } kAll[] = {{"pingpong", pingpong}, {"sendrecv", sendrecv}, {"send", send_windows}, {"put", put}, {"get", get}};
  for (size_t i = 0; i < sizeof kAll / sizeof kAll[0]; ++i) {
    if (strcmp(kAll[i].name, name) == 0) return kAll[i].run;
  }
  EXPECT(!"such a pattern");
  return NULL;
}

static double seconds_of(Pattern* run, int size, int turns) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  run(size, turns);
  return MPI_Wtime() - began;
}

/* How many turns last about so long, and whole windows; the same at both ranks. */
static int turns_that_last(double seconds, int turns, double took) {
  turns = (int)(turns * seconds / (took + 1e-7)) + 1;
  turns = (turns + kWindow - 1) / kWindow * kWindow;
  MPI_Bcast(&turns, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return turns;
}

static double time_of_a_turn(Pattern* run, int size, double seconds) {
  run(size, kWindow); /* what is done once */
  int turns = turns_that_last(seconds / 5, kWindow, seconds_of(run, size, kWindow));
  turns = turns_that_last(seconds, turns, seconds_of(run, size, turns));
  return seconds_of(run, size, turns) / turns;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  EXPECT(ranks == 2 && argc > 3);
  Pattern* run = pattern_called(argv[1]);
  const double seconds = atof(argv[2]) / 1e3;
  const int is_one_sided = run == put || run == get;
  enum { kRoom = 4 << 20 };
  in = malloc(kRoom);
  out = malloc(kRoom);
  memset(in, 1, kRoom);
  memset(out, 2, kRoom);
  if (is_one_sided) {
    char* base;
    MPI_Win_allocate(kRoom, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    memset(base, 3, kRoom);
    MPI_Win_lock_all(0, window);
  }
  for (int i = 3; i < argc; ++i) {
    const int size = atoi(argv[i]);
    const double took = time_of_a_turn(run, size, seconds);
    if (rank == 0) printf("%s %d %.3f\n", argv[1], size, took * 1e6 / (run == pingpong ? 2 : 1));
  }
  if (is_one_sided) {
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
  }
  MPI_Finalize();
  return 0;
}
