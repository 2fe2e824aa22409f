/*
 * stream.h: follows a shard over one connection after the other.
 *
 * In: CALL sluice.stream.  Out: apply; acknowledgements.
 * Runs in the thread that owns the replica.
 */
#ifndef SLUICE_STREAM_H
#define SLUICE_STREAM_H

#include "replica.h"

typedef enum SluiceGoal
{
	SLUICE_GOAL_FOLLOW,			/* until it is stopped */
	SLUICE_GOAL_PASSED,			/* until every table's high is passed */
	SLUICE_GOAL_CAUGHT_UP		/* until the position the server had at the greeting is applied */
} SluiceGoal;

/*
 * SLUICE_OK: the goal is reached, everything applied is committed.
 * Connections are made anew as needed; SLUICE_RETRY never comes out.
 */
extern SluiceOutcome sluice_stream_run(SluiceAgent *agent, SluiceReplica *replica,
									   SluiceGoal goal);

#endif
