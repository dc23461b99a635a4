/* The ranks of a job spawn another one together, and each exchanges a message with each rank of it: both jobs have a key
 * in common, whichever process started which. */
#include "ranks.h"

enum { kTag = 5, kBytes = 20000, kChildren = 2 };

/* Every rank here sends to every rank there, and receives from it. `here` and `there` tell the jobs' messages apart. */
static void exchange(MPI_Comm between, int here, int there) {
  static char out[kBytes], in[kBytes];
  int own = 0, count = 0;
  MPI_Comm_rank(between, &own);
  MPI_Comm_remote_size(between, &count);
  fill(out, kBytes, own, here);
  for (int other = 0; other < count; ++other) {
    MPI_Sendrecv(out, kBytes, MPI_CHAR, other, kTag, in, kBytes, MPI_CHAR, other, kTag, between, MPI_STATUS_IGNORE);
    EXPECT(is_filled(in, kBytes, other, there));
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm parent, children;
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    exchange(parent, 2, 1);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
  }
  MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, kChildren, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  exchange(children, 1, 2);
  MPI_Comm_disconnect(&children);
  end("spawn");
  return 0;
}
