// The files of src that need no test at the mirrored place, each with where it is tested instead.

/** Reason by path. The check complains about an entry that has become unnecessary. */
export const WITHOUT_MIRROR_TEST: Readonly<Record<string, string>> = {
  "src/topology/layout.ts": "types and one number; test/topology/stamp.test.ts",
};
