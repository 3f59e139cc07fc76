import type { Health } from "../../contract/health.ts";
import type { Db } from "../../store/database.ts";
import { selectHealthFacts, selectTraffic, storeStates, storeTrouble } from "./queries.ts";
import { healthOf } from "./rules.ts";
import { troubleOf } from "./traffic.ts";

export { healthColumns, healthJoins, type HealthFacts } from "./queries.ts";
export { call, healthOf, minuteOf } from "./rules.ts";

/** Returns the health of an organization's projects by their ids; null for a deleted project. */
export async function readHealth(db: Db, orgId: string, now: Date): Promise<ReadonlyMap<string, Health | null>> {
  return new Map((await selectHealthFacts(db, orgId)).map((facts) => [facts.id, healthOf(facts, now)]));
}

/** A living project with an active deployment, as alerts name it. */
export interface ObservedHealth {
  /** `organization/project`. */
  readonly subject: string;
  readonly health: Health;
  /** Five crashes in five minutes, or five in a row. */
  readonly is_loop: boolean;
}

// Semantics, "Projects, deployments, builds": an alert after 5 restarts in 5 minutes.
const loopCrashes = 5;

/** Evaluates all projects, stores the states that changed, and returns those with an active deployment. */
export async function observeHealth(db: Db, now: Date): Promise<readonly ObservedHealth[]> {
  const seen = (await selectHealthFacts(db, null)).flatMap((facts) => {
    const health = healthOf(facts, now);
    return health === null ? [] : [{ facts, health }];
  });
  const changed = seen.filter(({ facts, health }) => health.state !== (facts.state ?? "empty"));
  await storeStates(
    db,
    changed.map(({ facts: { id, org_id }, health: { state } }) => ({ project_id: id, org_id, state })),
  );
  // A broken preview is no reason for an alert.
  return seen
    .filter(({ facts }) => facts.active !== null && !facts.is_preview)
    .map(({ facts, health }) => ({
      subject: `${facts.org_slug}/${facts.slug}`,
      health,
      is_loop: facts.crashes_5 >= loopCrashes || facts.restarts >= loopCrashes,
    }));
}

/** Evaluates the requests of the last five minutes of every project that got bad ones, and stores what is wrong with them. */
export async function evaluateTraffic(db: Db, now: Date): Promise<void> {
  for (const { project_id, org_id, samples, live } of await selectTraffic(db))
    await storeTrouble(db, { project_id, org_id }, troubleOf(samples, live, now));
}
