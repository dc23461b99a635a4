/* What the MPI programs of the tests have in common: checks that name what went wrong, and content that
 * says where it comes from. */
#ifndef PULLMAN_TEST_MPI_RANKS_H
#define PULLMAN_TEST_MPI_RANKS_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;

#define EXPECT(what)                                                              \
  do {                                                                            \
    if (!(what)) {                                                                \
      fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #what);   \
      MPI_Abort(MPI_COMM_WORLD, 1);                                               \
    }                                                                             \
  } while (0)

static inline void begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static inline void end(const char* what) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%s: right on %d ranks\n", what, ranks);
  MPI_Finalize();
}

/* Byte `at` of a message from `sender` with that tag. */
static inline char content(int sender, int tag, size_t at) {
  return (char)(sender * 31 + tag * 7 + (int)(at % 251));
}

static inline void fill(char* bytes, size_t size, int sender, int tag) {
  for (size_t i = 0; i < size; ++i) bytes[i] = content(sender, tag, i);
}

static inline int is_filled(const char* bytes, size_t size, int sender, int tag) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != content(sender, tag, i)) return 0;
  }
  return 1;
}

#endif
