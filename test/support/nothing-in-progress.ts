import type { InProgress } from "../../src/store/leases.ts";

/** A worker that has claimed nothing yet. */
export const nothingInProgress: InProgress = { ids: [], full: [], served: [] };
