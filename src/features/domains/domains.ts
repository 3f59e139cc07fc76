import type { Clock } from "../../ports/clock.ts";
import type { Dns, DnsAnswer } from "../../ports/dns.ts";
import type { Db } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { recordEvent } from "../activity/activity.ts";
import * as checkQueries from "./check-queries.ts";
import { zoneOf } from "./parse-hostname.ts";
import type { DomainSettings } from "./settings.ts";
import { domainsById, domainsOf, type DomainRow } from "./queries.ts";
import { evaluateDns, nextCheckMs, proofName, type DnsObservation } from "./rules.ts";

export interface Checking {
  readonly db: Db;
  readonly wakeups: Wakeups;
  readonly clock: Clock;
  readonly ports: { readonly dns: Dns };
  readonly domains: DomainSettings;
}

/** Looks up at most `most` hostnames that are due, and ends grace times that are over. Returns the number of lookups. */
export async function checkDueDomains(platform: Checking, most: number): Promise<number> {
  await endGraceTimes(platform);
  const ids = await checkQueries.takeDueChecks(platform.db, most);
  await checkDomains(platform, ids);
  return ids.length;
}

/** Looks up the project's hostnames whose last lookup is older than `ageMs`. */
export async function checkStaleDomains(
  platform: Checking,
  project: { readonly org_id: string; readonly project_id: string },
  ageMs: number,
): Promise<void> {
  await checkDomains(platform, await checkQueries.takeStaleChecks(platform.db, project, ageMs));
}

const atOnce = 10;

/** Looks up these hostnames, a few at a time, and stores the results. */
export async function checkDomains(platform: Checking, ids: readonly string[]): Promise<void> {
  const waiting = [...(await domainsById(platform.db, ids, ownZones(platform.domains)))];
  const work = async () => {
    for (let row = waiting.shift(); row; row = waiting.shift()) await checkDomain(platform, row);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, waiting.length) }, work));
}

/** Returns the hostnames attached to the project, served or not. */
export async function hostnamesOf(
  platform: Pick<Checking, "db" | "domains">,
  project: { readonly org_id: string; readonly project_id: string },
): Promise<readonly string[]> {
  return (await domainsOf(platform.db, project, ownZones(platform.domains))).map((row) => row.hostname);
}

export type { DomainSettings } from "./settings.ts";
export { zoneOf } from "./parse-hostname.ts";
export { addressesElsewhere } from "./rules.ts";
export { attachedHostnames, domainNamed } from "./queries.ts";

export function ownZones({ appsDomain, controlHost }: DomainSettings): readonly string[] {
  return [appsDomain, controlHost].map(zoneOf).filter((zone) => zone !== null);
}

async function checkDomain(platform: Checking, row: DomainRow): Promise<void> {
  const evaluated = evaluateDns(row, await look(platform.ports.dns, row), platform.domains.publicAddresses);
  const nextMs = nextCheckMs(row, evaluated, platform.clock.now().getTime());
  await platform.db.transaction().execute(async (tx) => {
    const change = await checkQueries.writeDnsResult(tx, row, evaluated, nextMs);
    if (change === "served") await checkQueries.markClaimVerified(tx, row);
    if (change === "served") await platform.wakeups.send(tx, "edge", row.project_id);
    const action = actions[change];
    const { org_id, project_id, hostname: target } = row;
    if (action !== null) await recordEvent(tx, { org_id, project_id, action, target });
  });
}

const actions: Readonly<Record<checkQueries.Change, string | null>> = {
  served: "domain.served",
  lost: "domain.lost",
  recovered: "domain.recovered",
  none: null,
};

const notAsked: DnsAnswer = { outcome: "none" };

async function look(dns: Dns, { hostname }: DomainRow): Promise<DnsObservation> {
  const addresses = await dns.addresses(hostname);
  const texts = addresses.outcome === "unavailable" ? notAsked : await dns.texts(proofName(hostname));
  return { addresses, texts };
}

async function endGraceTimes({ db, wakeups, domains }: Checking): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const ended = await checkQueries.endGrace(tx, domains.graceMs);
    for (const { org_id, project_id, hostname } of ended)
      await recordEvent(tx, { org_id, project_id, action: "domain.not_served", target: hostname });
    if (ended.length > 0) await wakeups.send(tx, "edge");
  });
}
