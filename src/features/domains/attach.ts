import { randomBytes } from "node:crypto";
import { limits } from "../../contract/limits.ts";
import { newId } from "../../kit/ids.ts";
import type { Tx } from "../../store/database.ts";
import { claim, holderOf, insertDomain, lockDomains, redirectDomain, redirectsOf } from "./queries.ts";

export interface DesiredDomain {
  readonly org_id: string;
  readonly project_id: string;
  readonly hostname: string;
  readonly zone: string;
  /** The project's hostname to which requests are redirected; null: none; undefined: as before. */
  readonly redirect_to: string | null | undefined;
}

/** The result of attaching a hostname. `taken`: a TXT record `proof` moves it here. `misdirected`: `detail` says why it can't redirect. */
export type Attached =
  | { readonly outcome: "attached"; readonly id: string }
  | { readonly outcome: "already"; readonly isChanged: boolean }
  | { readonly outcome: "own" }
  | { readonly outcome: "full" }
  | { readonly outcome: "project_deleted" }
  | { readonly outcome: "misdirected"; readonly detail: string }
  | { readonly outcome: "taken"; readonly proof: string };

/** Attaches a hostname that no project has. */
export async function attach(tx: Tx, wanted: DesiredDomain): Promise<Attached> {
  const count = await lockDomains(tx, wanted);
  if (count === undefined) return { outcome: "project_deleted" };
  const target = await findTarget(tx, wanted);
  if (typeof target === "object") return target;
  const present = await attachedTo(tx, wanted);
  if (present?.outcome === "already") return { outcome: "already", isChanged: await redirect(tx, wanted, target) };
  if (present !== undefined) return present;
  if (count >= limits.domains_per_project) return { outcome: "full" };
  const id = await insert(tx, wanted, null);
  if (id !== undefined) await redirect(tx, wanted, target);
  if (id !== undefined) return { outcome: "attached", id };
  return (await attachedTo(tx, wanted)) ?? { outcome: "taken", proof: await claim(tx, claimOf(wanted), false) };
}

/** Attaches a hostname whose TXT record proves the organization's right to it; the project that has it loses it. */
export async function takeOver(
  tx: Tx,
  wanted: DesiredDomain,
  now: Date,
): Promise<Attached & { readonly loser?: Loser }> {
  const count = await lockDomains(tx, wanted);
  if (count === undefined) return { outcome: "project_deleted" };
  if (count >= limits.domains_per_project) return { outcome: "full" };
  const target = await findTarget(tx, wanted);
  if (typeof target === "object") return target;
  const loser = await tx
    .deleteFrom("domain")
    .where("hostname", "=", wanted.hostname)
    .where("org_id", "<>", wanted.org_id)
    .returning(["org_id", "project_id"])
    .executeTakeFirst();
  const id = await insert(tx, wanted, now);
  if (id !== undefined) await redirect(tx, wanted, target);
  if (id !== undefined) return { outcome: "attached", id, ...(loser === undefined ? {} : { loser }) };
  return (await attachedTo(tx, wanted)) ?? { outcome: "taken", proof: await claim(tx, claimOf(wanted), false) };
}

export interface Loser {
  readonly org_id: string;
  readonly project_id: string;
}

/** Returns the id of the hostname to redirect to, or why it can't be one: a redirect leads to a name that serves the application. */
async function findTarget(tx: Tx, wanted: DesiredDomain): Promise<string | undefined | Attached> {
  const { hostname, redirect_to: to } = wanted;
  if (to === undefined || to === null) return undefined;
  const misdirected = (detail: string): Attached => ({ outcome: "misdirected", detail });
  if (to === hostname) return misdirected("a name can't redirect to itself");
  const target = await redirectsOf(tx, wanted, to);
  if (target === undefined) return misdirected(`${to} is not a hostname of this project; attach it first`);
  if (target.to !== null) return misdirected(`${to} itself redirects to ${target.to}; name that one`);
  const from = (await redirectsOf(tx, wanted, hostname))?.from;
  if (from !== undefined && from !== null)
    return misdirected(`${from} redirects to ${hostname}, which therefore can't redirect elsewhere`);
  return target.id;
}

async function redirect(tx: Tx, wanted: DesiredDomain, target: string | undefined): Promise<boolean> {
  if (wanted.redirect_to === undefined) return false;
  return redirectDomain(tx, wanted, { hostname: wanted.hostname, redirect_id: target ?? null });
}

async function attachedTo(tx: Tx, wanted: DesiredDomain): Promise<Attached | undefined> {
  const holder = await holderOf(tx, wanted.hostname);
  if (holder === undefined) return undefined;
  if (holder.project_id === wanted.project_id) return { outcome: "already", isChanged: false };
  if (holder.org_id === wanted.org_id) return { outcome: "own" };
  return { outcome: "taken", proof: await claim(tx, claimOf(wanted), false) };
}

async function insert(tx: Tx, wanted: DesiredDomain, txt_seen_at: Date | null): Promise<string | undefined> {
  const id = newId("dom");
  const dns_detail = "Berth has not looked up the name yet.";
  if (!(await insertDomain(tx, { ...nameOf(wanted), id, dns_detail, txt_seen_at }))) return undefined;
  await claim(tx, claimOf(wanted), true);
  return id;
}

const nameOf = ({ org_id, project_id, hostname, zone }: DesiredDomain) => ({ org_id, project_id, hostname, zone });

function claimOf({ org_id, hostname, zone }: DesiredDomain) {
  return { org_id, hostname, zone, proof: `berth-proof=${randomBytes(24).toString("base64url")}` };
}
