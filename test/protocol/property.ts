/** fast-check with fixed seeds, so that a run in CI and a run at home try the same cases. */
import fc from "fast-check";

fc.configureGlobal({ seed: 20_261_130, numRuns: 300 });

export { fc };
