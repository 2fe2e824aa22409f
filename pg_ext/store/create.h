/*
 * create.h: making and dropping cdc_<shard>.
 *
 * Both run in the caller's transaction, as the extension's owner.
 */
#ifndef SLUICE_CREATE_H
#define SLUICE_CREATE_H

/* ERROR (duplicate_object) if the schema is there already. */
extern void sluice_store_create(const char *shard);

/* Does nothing if the schema is gone. */
extern void sluice_store_drop(const char *shard);

#endif
