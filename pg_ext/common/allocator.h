/*
 * allocator.h: the server's memory contexts as a SluiceAllocator.
 */
#ifndef SLUICE_ALLOCATOR_H
#define SLUICE_ALLOCATOR_H

#include "buffer.h"

/*
 * Takes memory from the context that is current at the first grow; it stays
 * there.  Sizes above 1 GB are allowed; failure is an ERROR.
 */
extern const SluiceAllocator sluice_palloc_allocator;

#endif
