// SPDX-License-Identifier: Apache-2.0
// MPI_Allreduce of floats by itself, for allreduce.py: rank 0 prints BYTES
// MICROSECONDS, of a call in the median round of calls in a row.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int counts[] = {1, 100000, 3274634, 25000000};
  const int rounds[] = {50, 20, 10, 5}, calls[] = {100, 10, 1, 1};
  for (int s = 0; s < 4; ++s) {
    float* data = calloc((size_t)counts[s], sizeof(float));
    double times[50];
    for (int i = -2; i < rounds[s]; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      for (int c = 0; c < calls[s]; ++c) {
        MPI_Allreduce(MPI_IN_PLACE, data, counts[s], MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      }
      if (i >= 0) times[i] = 1e6 * (MPI_Wtime() - begin) / calls[s];
    }
    qsort(times, (size_t)rounds[s], sizeof(double), compare);
    if (rank == 0) printf("%d %.2f\n", counts[s] * 4, times[rounds[s] / 2]);
    free(data);
  }
  MPI_Finalize();
  return 0;
}
