/*
 * unit.h: the frame of a CUnit program: one suite, exit code by its result.
 */
#ifndef SLUICE_UNIT_H
#define SLUICE_UNIT_H

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>

typedef struct UnitTest
{
	const char *name;
	void		(*run) (void);
} UnitTest;

static inline int
unit_main(const char *suite_name, const UnitTest *tests, size_t ntests)
{
	CU_pSuite	suite;
	unsigned	failures;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	suite = CU_add_suite(suite_name, NULL, NULL);
	for (size_t i = 0; i < ntests; i++)
	{
		if (CU_add_test(suite, tests[i].name, tests[i].run) == NULL)
			return 2;
	}
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures();
	if (CU_get_error() != CUE_SUCCESS || CU_get_number_of_tests_run() != ntests)
		failures++;
	CU_cleanup_registry();
	return failures == 0 ? 0 : 1;
}

#define UNIT_MAIN(suite_name, tests) \
int \
main(void) \
{ \
	return unit_main(suite_name, tests, sizeof(tests) / sizeof((tests)[0])); \
}

#endif
