import { setTimeout as sleep } from "node:timers/promises";
import { randomBytes } from "node:crypto";
import { limits } from "../../contract/limits.ts";
import type { Body, Result } from "../../contract/routes.ts";
import { recordActivity, recordEvent } from "../activity/activity.ts";
import type { Context, Handlers, RefusalText } from "../context.ts";
import { findProject } from "../projects/projects.ts";
import { checkDomains, checkStaleDomains, ownZones } from "./domains.ts";
import { parseHostname } from "./parse-hostname.ts";
import { presentDomain } from "./present-domain.ts";
import {
  deleteDomain,
  domainOf,
  domainsOf,
  claim,
  holderOf,
  insertDomain,
  lockDomains,
  redirectDomain,
  redirectsOf,
} from "./queries.ts";
import { proofName } from "./rules.ts";
import { newId } from "../../kit/ids.ts";
import type { Tx } from "../../store/database.ts";

export const domains: Handlers<"domains"> = {
  async attach(ctx, { params, body }) {
    const wanted = await desiredDomain(ctx, params.slug, body);
    const attached = await attach(ctx.tx, wanted);
    const { outcome } = attached;
    const { project_id, hostname: target } = wanted;
    const silent = attached.outcome === "already" && !attached.isChanged;
    ctx.note({ project_id, target, silent, recordedLater: outcome === "taken", detail: detailOf(wanted) });
    if (attached.outcome === "already") ctx.answer(200);
    if (attached.outcome === "already" && attached.isChanged)
      await ctx.platform.wakeups.send(ctx.tx, "edge", project_id);
    if (attached.outcome === "misdirected") return invalid(ctx, "redirect_to", attached.detail);
    if (attached.outcome === "taken") return { outcome: () => moveOrRefuse(ctx, wanted, attached.proof) };
    const refused = refusalOf(attached);
    if (refused !== undefined) return ctx.fail(...refused);
    return { outcome: () => checkAndShow(ctx, wanted, attached) };
  },

  async list(ctx) {
    return { outcome: () => refreshAndList(ctx) };
  },

  async detach(ctx, { params }) {
    const { key } = ctx.project;
    const { domains: own } = ctx.platform;
    const parsed = parseHostname(params.hostname, own);
    // The name may have become the platform's own after it was attached, so a refused one can still be detached.
    const hostname = "refused" in parsed ? params.hostname.toLowerCase() : parsed.hostname;
    const resource = await deleteDomain(ctx.tx, key, hostname);
    if (resource === undefined) return ctx.fail("not_found");
    ctx.note({ target: hostname, resource });
    await ctx.platform.wakeups.send(ctx.tx, "edge", key.project_id);
    return undefined;
  },
};

type AttachContext = Context<"domains.attach">;

// Check the hostname before the project's state, so that a request that can never succeed gets that error first.
async function desiredDomain(ctx: AttachContext, slug: string, body: Body<"domains.attach">): Promise<DesiredDomain> {
  const project = await findProject(ctx.tx, ctx.caller.org_id, slug);
  if (project === undefined) return ctx.fail("not_found");
  const parsed = parseHostname(body.hostname, ctx.platform.domains);
  if ("refused" in parsed) return invalid(ctx, "hostname", parsed.refused);
  const { redirect_to: to } = body;
  const target = typeof to === "string" ? parseHostname(to, ctx.platform.domains) : { hostname: to };
  if ("refused" in target) return invalid(ctx, "redirect_to", target.refused);
  if (project.deleted_at !== null) return ctx.fail("project_deleted");
  return { org_id: project.org_id, project_id: project.id, ...parsed, redirect_to: target.hostname };
}

function invalid(ctx: AttachContext, path: string, message: string): never {
  return ctx.fail("invalid_request", { error: `${path}: ${message}`, details: [{ path, message }] });
}

const detailOf = ({ redirect_to }: DesiredDomain) => (redirect_to === undefined ? {} : { redirect_to });

function refusalOf(attached: Attached): ["hostname_taken" | "conflict" | "project_deleted", RefusalText] | undefined {
  switch (attached.outcome) {
    case "own":
      return [
        "hostname_taken",
        { hint: "Another project of your organization has it: detach it from that project first." },
      ];
    case "full":
      return [
        "conflict",
        {
          error: `A project has at most ${limits.domains_per_project} hostnames.`,
          hint: "Detach one that is no longer needed first.",
        },
      ];
    case "project_deleted":
      return ["project_deleted", {}];
    case "taken":
      return ["hostname_taken", {}];
    case "attached":
    case "already":
    case "misdirected":
      return undefined;
  }
}

/** Handles a name that another organization has: moves it if the caller's TXT record exists, else refuses and names that record. */
async function moveOrRefuse(
  ctx: AttachContext,
  wanted: DesiredDomain,
  proof: string,
): Promise<Result<"domains.attach">> {
  const name = proofName(wanted.hostname);
  const texts = await ctx.platform.ports.dns.texts(name);
  const isProven = texts.outcome === "found" && texts.values.some((text) => text.trim() === proof);
  if (!isProven) {
    const hint = `If the name is yours, create the TXT record ${name} with the value ${proof} and attach the name again.`;
    return ctx.fail("hostname_taken", { hint });
  }
  const moved = await ctx.platform.db.transaction().execute(async (tx) => {
    const taken = await takeOver(tx, wanted, ctx.now);
    if (taken.outcome !== "attached") return taken;
    const { org_id, project_id, hostname: target } = wanted;
    if (taken.loser) await recordEvent(tx, { ...taken.loser, action: "domain.moved_away", target });
    const { token_id: actor_token_id, token_name: actor_name } = ctx.caller;
    const detail = { proof: "txt", ...detailOf(wanted) };
    await recordActivity(tx, {
      org_id,
      project_id,
      actor_token_id,
      actor_name,
      action: "domain.attached",
      target,
      detail,
    });
    await ctx.platform.wakeups.send(tx, "edge");
    return taken;
  });
  if (moved.outcome === "misdirected") return invalid(ctx, "redirect_to", moved.detail);
  const refused = refusalOf(moved);
  if (refused !== undefined) return ctx.fail(...refused);
  return checkAndShow(ctx, wanted, moved);
}

// Long enough for DNS servers that respond at all; the reconciler retries the others.
const lookMs = 4000;

async function checkAndShow(
  ctx: AttachContext,
  wanted: DesiredDomain,
  attached: Attached,
): Promise<Result<"domains.attach">> {
  const { platform } = ctx;
  if (attached.outcome === "attached") await atMost(lookMs, checkDomains(platform, [attached.id]), ctx);
  const row = await domainOf(platform.db, wanted, { hostname: wanted.hostname, ownZones: ownZones(platform.domains) });
  // The hostname was detached just now.
  if (row === undefined) return ctx.fail("not_found");
  return presentDomain(platform.domains, row);
}

// The specification wants refreshed states in the list. One refresh a minute limits the DNS queries that a caller can cause.
const refreshAfterMs = 60_000;

async function refreshAndList(ctx: Context<"domains.list">) {
  const { platform, project } = ctx;
  await atMost(lookMs, checkStaleDomains(platform, project.key, refreshAfterMs), ctx);
  const rows = await domainsOf(platform.db, project.key, ownZones(platform.domains));
  return { domains: rows.map((row) => presentDomain(platform.domains, row)) };
}

/** Waits for the work at most this long; the work continues afterwards. */
async function atMost(timeMs: number, work: Promise<void>, { log }: Pick<AttachContext, "log">): Promise<void> {
  const over = new AbortController();
  const safe = work.catch((error: unknown) => log.error({ err: error }, "could not look up hostnames"));
  await Promise.race([safe, sleep(timeMs, undefined, { signal: over.signal }).catch(() => {})]);
  over.abort();
}

interface DesiredDomain {
  readonly org_id: string;
  readonly project_id: string;
  readonly hostname: string;
  readonly zone: string;
  /** The project's hostname to which requests are redirected; null: none; undefined: as before. */
  readonly redirect_to: string | null | undefined;
}

/** The result of attaching a hostname. `taken`: a TXT record `proof` moves it here. `misdirected`: `detail` says why it can't redirect. */
type Attached =
  | { readonly outcome: "attached"; readonly id: string }
  | { readonly outcome: "already"; readonly isChanged: boolean }
  | { readonly outcome: "own" }
  | { readonly outcome: "full" }
  | { readonly outcome: "project_deleted" }
  | { readonly outcome: "misdirected"; readonly detail: string }
  | { readonly outcome: "taken"; readonly proof: string };

/** Attaches a hostname that no project has. */
async function attach(tx: Tx, wanted: DesiredDomain): Promise<Attached> {
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
async function takeOver(tx: Tx, wanted: DesiredDomain, now: Date): Promise<Attached & { readonly loser?: Loser }> {
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

interface Loser {
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
