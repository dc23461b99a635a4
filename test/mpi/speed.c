/* Ping-pong between ranks 0 and 1: half a round trip in microseconds and MB/s, for a range of sizes. */
#include "ranks.h"

static double half_round_trip(char* bytes, int size, int turns) {
  double began = 0;
  for (int i = -turns / 10; i < turns; ++i) {
    if (i == 0) began = MPI_Wtime();
    if (rank == 0) {
      MPI_Send(bytes, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(bytes, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(bytes, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(bytes, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - began) / turns / 2;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  char* bytes = calloc(1, 4 << 20);
  for (int size = 8; rank < 2 && size <= 4 << 20; size *= 8) {
    const double seconds = half_round_trip(bytes, size, size < 10000 ? 10000 : 300);
    if (rank == 0) printf("%8d B %8.2f us %8.0f MB/s\n", size, seconds * 1e6, size / seconds / 1e6);
  }
  end("speed");
  return 0;
}
