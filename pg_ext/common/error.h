/*
 * error.h: SQLSTATEs of our own (class SL), as docs/protocol.md lists them.
 */
#ifndef SLUICE_ERROR_H
#define SLUICE_ERROR_H

#define SLUICE_ERRCODE_WRONG_REPLICA_VERSION MAKE_SQLSTATE('S', 'L', '0', '0', '1')
#define SLUICE_ERRCODE_WATERMARK_TOO_OLD MAKE_SQLSTATE('S', 'L', '0', '0', '2')
#define SLUICE_ERRCODE_DIVERGED MAKE_SQLSTATE('S', 'L', '0', '0', '3')
#define SLUICE_ERRCODE_PROTOCOL_VERSION MAKE_SQLSTATE('S', 'L', '0', '0', '4')
#define SLUICE_ERRCODE_REPLACED MAKE_SQLSTATE('S', 'L', '0', '0', '5')
#define SLUICE_ERRCODE_SHARD_STOPPED MAKE_SQLSTATE('S', 'L', '0', '0', '6')
#define SLUICE_ERRCODE_UNKNOWN_SHARD MAKE_SQLSTATE('S', 'L', '0', '0', '7')
#define SLUICE_ERRCODE_POSITION_AHEAD MAKE_SQLSTATE('S', 'L', '0', '0', '8')

#endif
