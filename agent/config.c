/*
 * config.c: command line, environment and file.
 *
 * In: argv, SLUICE_…, a file.  Out: SluiceConfig, checked.
 * Runs in: the main thread, before anything else.  Locks: none.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "log.h"

#define NAME_MAX_BYTES 200		/* of a replica, as the server takes it */

typedef enum Kind
{
	TEXT,
	NUMBER,
	SWITCH,						/* on, off */
	FLAG						/* no value on the command line */
} Kind;

typedef struct Option
{
	const char *name;
	Kind		kind;
	size_t		offset;			/* in SluiceConfig */
	const char *value_name;
	const char *help;
} Option;

static const Option options[] = {
	{"upstream", TEXT, offsetof(SluiceConfig, upstream), "CONNINFO",
	"the server: a libpq connection string or URI; what it leaves out comes from\n"
	"PGHOST, PGSERVICE, … and the password file, as with psql"},
	{"shard", TEXT, offsetof(SluiceConfig, shard), "NAME", "the shard to follow"},
	{"replica", TEXT, offsetof(SluiceConfig, replica), "FILE", "the SQLite file"},
	{"name", TEXT, offsetof(SluiceConfig, name), "NAME",
	"what the server calls this replica (default: host and path)"},
	{"jobs", NUMBER, offsetof(SluiceConfig, jobs), "N",
	"connections of a first copy (default 1)"},
	{"row-log", SWITCH, offsetof(SluiceConfig, row_log), "on|off",
	"keep which rows changed, for readers of _zero.changeLog2 (default on)"},
	{"no-copy", FLAG, offsetof(SluiceConfig, no_copy), NULL,
	"never copy afresh: end with exit code 5 instead"},
	{"progress", FLAG, offsetof(SluiceConfig, progress), NULL, "show how far it has come"},
	{"json", FLAG, offsetof(SluiceConfig, json), NULL, "status as JSON"},
	{"cookies", FLAG, offsetof(SluiceConfig, cookies), NULL,
	"status: as JSON, what the change log would need to know of the file"},
	{"log-level", TEXT, offsetof(SluiceConfig, log_level), "LEVEL",
	"error, warning, info (default) or debug"},
	{"config", TEXT, offsetof(SluiceConfig, config), "FILE",
	"lines \"name = value\" with the names of these options"},
};

#define NOPTIONS (sizeof(options) / sizeof(options[0]))

static const char *const commands[] = {"run", "sync", "status", "verify", "version", "help"};

/* ---- help ---- */

void
sluice_config_help(void)
{
	puts("sluice-agent keeps an SQLite file equal to the published tables of PostgreSQL.\n"
		 "\n"
		 "Usage:\n"
		 "  sluice-agent run    --upstream CONNINFO --shard NAME --replica FILE\n"
		 "  sluice-agent sync   --upstream CONNINFO --shard NAME --replica FILE\n"
		 "  sluice-agent status --replica FILE\n"
		 "  sluice-agent verify --upstream CONNINFO --shard NAME --replica FILE\n"
		 "\n"
		 "run     copies the tables if there is no usable file yet, then follows every\n"
		 "        change until it is stopped (SIGTERM)\n"
		 "sync    the same, but ends when the file is up to date\n"
		 "status  says what a file is a replica of and how far it has come\n"
		 "verify  compares a file with the server's tables\n"
		 "\n"
		 "Options:");
	for (size_t i = 0; i < NOPTIONS; i++)
	{
		char		head[64];
		const char *line = options[i].help;

		snprintf(head, sizeof(head), "--%s%s%s", options[i].name,
				 options[i].value_name != NULL ? " " : "",
				 options[i].value_name != NULL ? options[i].value_name : "");
		while (line != NULL)
		{
			const char *end = strchr(line, '\n');

			printf("  %-20s %.*s\n", head, end != NULL ? (int) (end - line) : INT_MAX, line);
			head[0] = '\0';
			line = end != NULL ? end + 1 : NULL;
		}
	}
	puts("\n"
		 "Each option can also be given as SLUICE_<NAME> in the environment or in the file\n"
		 "of --config; the command line wins over the environment, that over the file.\n"
		 "\n"
		 "Exit codes: 0 done, 1 differences found, 2 usage or configuration, 3 the server\n"
		 "refuses, 4 the file cannot be used, 5 a fresh copy is needed but not allowed,\n"
		 "7 a change cannot be applied.\n"
		 "\n"
		 "Example, on the server: CREATE EXTENSION sluice; CALL sluice.create_shard('app');\n"
		 "  sluice-agent run --upstream 'host=db dbname=app' --shard app --replica app.db\n"
		 "  sqlite3 app.db .tables");
}

/* ---- values ---- */

static char *
copy_text(const char *text)
{
	char	   *copy = strdup(text);

	if (copy == NULL)
	{
		sluice_log(SLUICE_ERROR, "out of memory");
		_exit(SLUICE_EXIT_USAGE);
	}
	return copy;
}

static bool
read_switch(const char *value, bool *on)
{
	static const char *const yes[] = {"on", "true", "yes", "1"};
	static const char *const no[] = {"off", "false", "no", "0"};

	for (int i = 0; i < 4; i++)
	{
		if (strcasecmp(value, yes[i]) == 0)
			return *on = true;
		if (strcasecmp(value, no[i]) == 0)
		{
			*on = false;
			return true;
		}
	}
	return false;
}

/* where: "--jobs", "SLUICE_JOBS" or "jobs in agent.conf"; values are not shown */
static SluiceOutcome
set(SluiceConfig *config, const Option *option, const char *value, const char *where)
{
	char	   *field = (char *) config + option->offset;
	char	   *end;
	long		number;

	switch (option->kind)
	{
		case TEXT:
			free(*(char **) (void *) field);
			*(char **) (void *) field = copy_text(value);
			return SLUICE_OK;
		case NUMBER:
			errno = 0;
			number = strtol(value, &end, 10);
			if (errno == 0 && end != value && *end == '\0' && number >= 1 && number <= 64)
			{
				*(int *) (void *) field = (int) number;
				return SLUICE_OK;
			}
			sluice_log(SLUICE_ERROR, "%s: a number from 1 to 64 is wanted", where);
			return SLUICE_USAGE;
		case SWITCH:
		case FLAG:
			if (read_switch(value, (bool *) (void *) field))
				return SLUICE_OK;
			sluice_log(SLUICE_ERROR, "%s: on or off is wanted", where);
			break;
	}
	return SLUICE_USAGE;
}

/* ---- sources ---- */

static char *
trim(char *text)
{
	char	   *end;

	text += strspn(text, " \t");
	end = text + strlen(text);
	while (end > text && isspace((unsigned char) end[-1]))
		end--;
	*end = '\0';
	/* a value may be quoted to keep blanks */
	if (end - text >= 2 && (*text == '\'' || *text == '"') && end[-1] == *text)
	{
		end[-1] = '\0';
		text++;
	}
	return text;
}

static SluiceOutcome
read_line(SluiceConfig *config, char *line, const char *path, int number)
{
	char	   *equals = strchr(line, '=');
	char	   *name = trim(line);
	char		where[PATH_MAX + 80];

	if (*name == '\0' || *name == '#')
		return SLUICE_OK;
	if (equals == NULL)
	{
		sluice_log(SLUICE_ERROR, "%s, line %d: \"name = value\" is wanted", path, number);
		return SLUICE_USAGE;
	}
	*equals = '\0';
	name = trim(line);
	for (size_t i = 0; i < NOPTIONS; i++)
		if (strcmp(options[i].name, name) == 0 && strcmp(name, "config") != 0)
		{
			snprintf(where, sizeof(where), "%s in %s, line %d", name, path, number);
			return set(config, &options[i], trim(equals + 1), where);
		}
	sluice_log(SLUICE_ERROR, "%s, line %d: there is no option \"%s\"", path, number, name);
	return SLUICE_USAGE;
}

static SluiceOutcome
read_file(SluiceConfig *config, const char *path)
{
	FILE	   *file = fopen(path, "r");
	SluiceOutcome outcome = SLUICE_OK;
	char	   *line = NULL;
	size_t		size = 0;

	if (file == NULL)
	{
		sluice_log(SLUICE_ERROR, "cannot read configuration file \"%s\": %s", path,
				   strerror(errno));
		return SLUICE_USAGE;
	}
	for (int number = 1; outcome == SLUICE_OK && getline(&line, &size, file) >= 0; number++)
		outcome = read_line(config, line, path, number);
	free(line);
	fclose(file);
	return outcome;
}

static SluiceOutcome
read_environment(SluiceConfig *config)
{
	SluiceOutcome outcome = SLUICE_OK;

	for (size_t i = 0; i < NOPTIONS && outcome == SLUICE_OK; i++)
	{
		char		name[64] = "SLUICE_";
		const char *value;

		for (size_t c = 0; options[i].name[c] != '\0'; c++)
			name[7 + c] = options[i].name[c] == '-' ? '_' :
				(char) toupper((unsigned char) options[i].name[c]);
		value = getenv(name);
		if (value != NULL && strcmp(options[i].name, "config") != 0)
			outcome = set(config, &options[i], value, name);
	}
	return outcome;
}

/* config NULL: only looks for --config. */
static SluiceOutcome
read_arguments(SluiceConfig *config, int argc, char **argv, const char **file)
{
	struct option longs[NOPTIONS + 3];
	int			found;

	memset(longs, 0, sizeof(longs));
	for (size_t i = 0; i < NOPTIONS; i++)
	{
		longs[i].name = options[i].name;
		longs[i].has_arg = options[i].kind == FLAG ? no_argument : required_argument;
		longs[i].val = 256 + (int) i;
	}
	longs[NOPTIONS] = (struct option) {"help", no_argument, NULL, 'h'};
	longs[NOPTIONS + 1] = (struct option) {"version", no_argument, NULL, 'V'};
	optind = 0;
	opterr = config == NULL;
	while ((found = getopt_long(argc, argv, "hV", longs, NULL)) != -1)
	{
		const Option *option = found >= 256 ? &options[found - 256] : NULL;
		char		where[64];

		if (found == '?')
			return SLUICE_USAGE;
		if (config == NULL)
		{
			if (option != NULL && strcmp(option->name, "config") == 0)
				*file = optarg;
			continue;
		}
		if (found == 'h' || found == 'V')
		{
			free(config->command);
			config->command = copy_text(found == 'h' ? "help" : "version");
			continue;
		}
		snprintf(where, sizeof(where), "--%s", option->name);
		if (set(config, option, optarg != NULL ? optarg : "on", where) != SLUICE_OK)
			return SLUICE_USAGE;
	}
	if (config != NULL && optind < argc && config->command == NULL)
		config->command = copy_text(argv[optind++]);
	if (config != NULL && optind < argc && strcmp(config->command, "help") != 0)
	{
		sluice_log(SLUICE_ERROR, "unexpected argument \"%s\"", argv[optind]);
		return SLUICE_USAGE;
	}
	return SLUICE_OK;
}

/* ---- checks ---- */

static bool
command_is(const SluiceConfig *config, const char *name)
{
	return strcmp(config->command, name) == 0;
}

/* The directory's real name: two names of one file are one replica. */
static SluiceOutcome
resolve_replica(SluiceConfig *config)
{
	char		real[PATH_MAX];
	char		directory[PATH_MAX];
	char		path[2 * PATH_MAX];
	char	   *slash;

	if (strlen(config->replica) > PATH_MAX - 64 || config->replica[0] == '\0')
	{
		sluice_log(SLUICE_ERROR, "--replica: that is no path of a file");
		return SLUICE_USAGE;
	}
	if (realpath(config->replica, real) != NULL)
	{
		free(config->replica);
		config->replica = copy_text(real);
		return SLUICE_OK;
	}
	snprintf(directory, sizeof(directory), "%s", config->replica);
	slash = strrchr(directory, '/');
	if (slash == NULL)
		strcpy(directory, ".");
	else
		slash[slash == directory] = '\0';
	if (realpath(directory, real) == NULL)
	{
		sluice_log(SLUICE_ERROR, "the directory of replica \"%s\" cannot be used: %s; "
				   "hint: Make it, and let the agent write there: SQLite's other files lie "
				   "beside the replica.", config->replica, strerror(errno));
		return SLUICE_UNUSABLE;
	}
	slash = strrchr(config->replica, '/');
	snprintf(path, sizeof(path), "%s/%s", strcmp(real, "/") == 0 ? "" : real,
			 slash != NULL ? slash + 1 : config->replica);
	free(config->replica);
	config->replica = copy_text(path);
	return SLUICE_OK;
}

static void
default_name(SluiceConfig *config)
{
	char		host[256] = "localhost";
	char		name[256 + PATH_MAX];
	size_t		length;

	gethostname(host, sizeof(host) - 1);
	snprintf(name, sizeof(name), "%s:%s", host, config->replica);
	length = strlen(name);
	/* the end of a long path tells more than its start */
	config->name = copy_text(length > NAME_MAX_BYTES ? name + length - NAME_MAX_BYTES : name);
}

static SluiceOutcome
check(SluiceConfig *config)
{
	bool		connects = !command_is(config, "status");
	bool		known = false;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		known |= command_is(config, commands[i]);
	if (!known)
	{
		sluice_log(SLUICE_ERROR, "there is no command \"%s\"; hint: sluice-agent help",
				   config->command);
		return SLUICE_USAGE;
	}
	if (command_is(config, "help") || command_is(config, "version"))
		return SLUICE_OK;
	if (config->log_level != NULL && !sluice_log_set_level(config->log_level))
	{
		sluice_log(SLUICE_ERROR, "--log-level: error, warning, info or debug is wanted");
		return SLUICE_USAGE;
	}
	if (config->replica == NULL || (connects && config->shard == NULL))
	{
		sluice_log(SLUICE_ERROR, "%s is missing; hint: sluice-agent help",
				   config->replica == NULL ? "--replica FILE" : "--shard NAME");
		return SLUICE_USAGE;
	}
	if (config->upstream == NULL)
		config->upstream = copy_text("");
	return resolve_replica(config);
}

SluiceOutcome
sluice_config_read(SluiceAgent *agent, int argc, char **argv)
{
	SluiceConfig *config = &agent->config;
	const char *file = getenv("SLUICE_CONFIG");
	SluiceOutcome outcome;

	config->jobs = 1;
	config->row_log = true;
	outcome = read_arguments(NULL, argc, argv, &file);
	if (outcome == SLUICE_OK && file != NULL)
		outcome = read_file(config, file);
	if (outcome == SLUICE_OK)
		outcome = read_environment(config);
	if (outcome == SLUICE_OK)
		outcome = read_arguments(config, argc, argv, &file);
	if (outcome == SLUICE_OK && config->command == NULL)
	{
		sluice_log(SLUICE_ERROR, "a command is wanted: run, sync, status, verify; "
				   "hint: sluice-agent help");
		outcome = SLUICE_USAGE;
	}
	if (outcome == SLUICE_OK)
		outcome = check(config);
	if (outcome == SLUICE_OK && config->replica != NULL && config->name == NULL)
		default_name(config);
	return outcome;
}

void
sluice_config_release(SluiceConfig *config)
{
	free(config->command);
	for (size_t i = 0; i < NOPTIONS; i++)
		if (options[i].kind == TEXT)
			free(*(char **) (void *) ((char *) config + options[i].offset));
	memset(config, 0, sizeof(*config));
}
