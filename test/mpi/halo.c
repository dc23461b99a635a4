/* A ring of ranks, each with a strip of a field, that show each other the edges of their strips in every step and
 * verify what they see:
 *
 *   halo SECONDS [BYTES]
 *
 * Rank 0 says every 50 ms: the time in ms (CLOCK_MONOTONIC), the steps so far, and the longest step since it last
 * spoke, in ms. */
#include <time.h>

#include "ranks.h"

enum { kSayEveryMs = 50 };
static char *shown[2], *seen[2];

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Side 0 is the left one: what the left neighbour showed on its right. */
static void show_each_other_the_edges(int step, size_t bytes) {
  const int neighbours[2] = {left_of(rank), right_of(rank)};
  MPI_Request requests[4];
  for (int side = 0; side < 2; ++side) {
    fill(shown[side], bytes, rank * 2 + side, step);
    MPI_Irecv(seen[side], (int)bytes, MPI_CHAR, neighbours[side], 1 - side, MPI_COMM_WORLD, &requests[side]);
  }
  for (int side = 0; side < 2; ++side) {
    MPI_Isend(shown[side], (int)bytes, MPI_CHAR, neighbours[side], side, MPI_COMM_WORLD, &requests[2 + side]);
  }
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  for (int side = 0; side < 2; ++side) {
    for (size_t i = 0; i < bytes; ++i) EXPECT(seen[side][i] == content(neighbours[side] * 2 + 1 - side, step, i));
  }
}

static int all_agree_to_go_on(double until_ms) {
  int more = now_ms() < until_ms;
  MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return more;
}

static void say(double at_ms, int steps, double longest_ms) {
  printf("%.3f %d %.3f\n", at_ms, steps, longest_ms);
  fflush(stdout);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const double seconds = argc > 1 ? atof(argv[1]) : 1;
  const size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 1024;
  for (int side = 0; side < 2; ++side) {
    shown[side] = malloc(bytes);
    seen[side] = malloc(bytes);
  }
  show_each_other_the_edges(0, bytes); /* and connect */
  MPI_Barrier(MPI_COMM_WORLD);
  double before = now_ms(), said = before, longest = 0;
  const double until = before + seconds * 1e3;
  for (int step = 1; all_agree_to_go_on(until); ++step) {
    show_each_other_the_edges(step, bytes);
    const double now = now_ms();
    if (now - before > longest) longest = now - before;
    before = now;
    if (rank == 0 && now - said >= kSayEveryMs) {
      say(now, step, longest);
      said = now;
      longest = 0;
    }
  }
  end("halo");
  return 0;
}
