import { randomBytes } from "node:crypto";
import { refusal } from "../../contract/access.ts";
import { limits } from "../../contract/limits.ts";
import { routes } from "../../contract/routes.ts";
import type { Row } from "../../contract/table.ts";
import type { Db, Tx } from "../../store/database.ts";
import { recordActivity } from "../activity/activity.ts";
import { voidApprovals } from "../approvals/approvals.ts";
import { Refused, type Caller, type HandlerPlatform } from "../context.ts";
import { describePerson, isRecent } from "../people/people.ts";
import * as tokens from "../tokens/tokens.ts";
import { isDocumentAddress, readDocument } from "./documents.ts";
import * as queries from "./queries.ts";
import * as rules from "./rules.ts";

export { prefersDocuments } from "./documents.ts";
export { commandLine, isRedirect, isSameRedirect, receiverOf, shownName, unprovenDays, type Client } from "./rules.ts";

type Platform = Pick<HandlerPlatform, "db" | "wakeups">;

const secret = () => randomBytes(32).toString("base64url");
const within = (ms: number) => new Date(Date.now() + ms);

/** Registers a public client. `address` is counted: one that registers many is refused. */
export async function registerClient(db: Db, given: Omit<rules.Client, "id">, address: string): Promise<rules.Client> {
  return db.transaction().execute(async (tx) => {
    if ((await queries.lockRegistrations(tx, address)) >= limits.oauth_registrations_per_hour)
      throw new Refused("rate_limited", {
        error: "Too many programs were registered from here.",
        retryAfterSeconds: 600,
      });
    const client = { ...given, id: `client_${secret().slice(0, 22)}` };
    await queries.insertClient(tx, { ...client, address }, limits.oauth_clients);
    return client;
  });
}

/** Returns a client that is registered, or that a document at its id describes. Only for people who are signed in: it may ask another site. */
export async function findClient(
  { db, ports }: Pick<HandlerPlatform, "db" | "ports">,
  id: string,
): Promise<rules.Client | undefined> {
  if (id === rules.commandLine.id) return rules.commandLine;
  return isDocumentAddress(id)
    ? readDocument(ports.outgoingHttp, id, AbortSignal.timeout(10_000))
    : queries.selectClient(db, id);
}

/** Returns whether a client's registration was forgotten. */
export async function isForgotten(db: Db, id: string): Promise<boolean> {
  if (id === rules.commandLine.id || isDocumentAddress(id)) return false;
  return (await queries.selectClient(db, id)) === undefined;
}

/** What a person chooses for a program. */
export interface Choice {
  /** Slugs; null: all that the person reaches. */
  readonly projects: readonly string[] | null;
  readonly read_only: boolean;
  readonly approval_mode: boolean;
  readonly platform_admin: boolean;
  readonly days: number;
}

/** Returns why this caller may not connect programs: it makes a token, so whoever may not make one may not. */
export function whyNotConnect(caller: Caller): string | undefined {
  const row = (routes as readonly Row[]).find(({ name }) => name === "tokens.create");
  if (caller.approval_mode) return "Your token is in approval mode, so it connects no programs.";
  if (row !== undefined && refusal(caller, row) !== undefined)
    return "Your token may not create tokens, so it connects no programs.";
  return undefined;
}

/** Returns whether a person who is signed in proved a moment ago to be there. A token needs no proof. */
export function hasProof({ session_id, fresh_at }: Pick<Caller, "session_id" | "fresh_at">): boolean {
  return session_id === null || isRecent(fresh_at);
}

/** Returns the organizations among which the person of a session chooses; none for a token, which belongs to one. */
export async function organizationsToChoose(db: Db, { session_id, person_id }: Caller) {
  return session_id === null ? [] : ((await describePerson(db, person_id))?.organizations ?? []);
}

/** Returns the session's person as a member of the organization that they chose; undefined when they are none. */
export async function callerIn(db: Db, caller: Caller, slug = caller.org_slug): Promise<Caller | undefined> {
  if (slug === caller.org_slug) return caller;
  const chosen = (await organizationsToChoose(db, caller)).find((each) => each.slug === slug);
  const there = chosen && (await tokens.callerNow(db, chosen.id));
  const { session_id, fresh_at } = caller;
  return there && { ...there, session_id, fresh_at };
}

export async function projectsToChoose(db: Db, caller: Caller): Promise<readonly string[]> {
  return queries.listSlugs(db, caller, limits.projects_of_token);
}

interface Consent {
  readonly caller: Caller;
  readonly client: rules.Client;
  readonly device: string;
  readonly choice: Choice;
  /** Until when the program must have fetched its token. */
  readonly until: Date;
}

/** Makes a program's token, whose text nobody has yet; it ends unless the program fetches it in time. */
async function allow(tx: Tx, { client, device, choice, until, ...consent }: Consent) {
  const { org_id } = consent.caller;
  const connected = await queries.lockPrograms(tx, org_id);
  // Read again under the lock, under which people's rights change.
  const caller = await tokens.callerNow(tx, consent.caller.token_id);
  const reason = caller === undefined ? "Your session has ended." : whyNotConnect(caller);
  if (caller === undefined || reason !== undefined) throw new Refused("forbidden", { error: reason ?? "" });
  if (connected >= limits.programs_per_organization)
    throw new Refused("conflict", {
      error: `An organization has at most ${limits.programs_per_organization} connected programs.`,
    });
  const kind = client.id === rules.commandLine.id ? ("cli" as const) : ("mcp" as const);
  const { role, person_id } = caller;
  const isProven = hasProof(consent.caller);
  const scopes = rules.scopesFor(kind, { ...caller, isProven }, choice.read_only);
  const rights = tokens.rightsWithin(caller, { role, scopes, approval_mode: choice.approval_mode });
  if ("refused" in rights) throw new Refused("forbidden", { error: rights.refused });
  const fail = (code: "invalid_request", more: object) => {
    throw new Refused(code, more);
  };
  const project_ids =
    choice.projects === null ? caller.project_ids : await tokens.projectIdsOf({ tx, caller, fail }, choice.projects);
  const name = kind === "cli" ? "berth on ".concat(device || "a computer") : client.name;
  const days = Math.min(Math.max(1, choice.days), isProven ? rules.mostDays : rules.unprovenDays);
  const mayAdminister = kind === "cli" && isProven && caller.platform_admin;
  const platform_admin = mayAdminister && choice.platform_admin && !choice.read_only && choice.projects === null;
  const id = await tokens.insertPending(tx, {
    ...{ ...rights, name, org_id, project_ids, person_id, kind, platform_admin },
    ...{ created_by: caller.token_id, created_at: new Date(), expires_at: until },
  });
  await queries.touchClient(tx, client.id);
  await recordActivity(tx, {
    ...{ org_id, project_id: null, actor_token_id: caller.token_id, actor_name: caller.token_name },
    ...{ action: "token.connected", target: id },
    detail: { name, role, ...(choice.projects && { projects: choice.projects }) },
  });
  return { token_id: id, token_expires_at: tokens.expiryWithin(caller, within(days * 86_400_000)) };
}

export interface CodeRequest {
  readonly client: rules.Client;
  readonly redirect_uri: string;
  readonly challenge: string;
  readonly device: string;
}

/** Records a person's consent and returns the code for the program's redirect. */
export async function issueCode({ db }: Platform, caller: Caller, asked: CodeRequest, choice: Choice): Promise<string> {
  const code = secret();
  const { client, redirect_uri, challenge, device } = asked;
  await db.transaction().execute(async (tx) => {
    const until = within(rules.codeMs);
    const made = await allow(tx, { caller, client, device, choice, until });
    const grant = { client_id: client.id, redirect_uri, challenge, device, user_code_hash: null };
    await queries.insertGrant(tx, { ...grant, ...made, hash: tokens.hashOf(code), expires_at: until });
  });
  return code;
}

export interface Exchange {
  readonly code: string;
  readonly client_id: string;
  readonly redirect_uri: string | undefined;
  readonly verifier: string;
}

export interface Issued {
  readonly token: string;
  /** Seconds. */
  readonly expires_in: number;
}

/** Exchanges a code for its token, once. A code used again, or without its verifier, was stolen: its token ends (OAuth 2.1, 4.1.3). */
export async function exchangeCode(platform: Platform, given: Exchange): Promise<Issued | undefined> {
  return platform.db.transaction().execute(async (tx) => {
    const grant = await queries.lockGrant(tx, { hash: tokens.hashOf(given.code) });
    if (grant === undefined) return undefined;
    const { token_id, challenge } = grant;
    if (token_id === null || challenge === null) return undefined;
    const isSame =
      given.client_id === grant.client_id &&
      (given.redirect_uri === undefined || given.redirect_uri === grant.redirect_uri);
    const isProven = tokens.hashOf(given.verifier).toString("base64url") === challenge;
    if (isSame && isProven && grant.is_open && grant.used_at === null) return give(tx, grant);
    await end(platform, tx, { id: token_id });
    await queries.updateGrant(tx, grant.hash, { used_at: new Date() });
    return undefined;
  });
}

type Grant = NonNullable<Awaited<ReturnType<typeof queries.lockGrant>>>;

async function give(tx: Tx, { hash, token_id, token_expires_at }: Grant): Promise<Issued | undefined> {
  await queries.updateGrant(tx, hash, { used_at: new Date() });
  const program = token_id === null ? undefined : await queries.selectProgram(tx, { id: token_id });
  if (program === undefined || token_expires_at === null) return undefined;
  const { text, ...stored } = tokens.textOf(program);
  if (!(await queries.giveText(tx, program.id, { ...stored, expires_at: token_expires_at }))) return undefined;
  return { token: text, expires_in: Math.floor((Date.parse(token_expires_at) - Date.now()) / 1000) };
}

/** Ends a program's token, within a second; returns whether there was one. */
async function end({ wakeups }: Platform, tx: Tx, by: { readonly id: string } | { readonly hash: Buffer }) {
  const program = await queries.selectProgram(tx, by);
  if (program === undefined) return;
  const { id, org_id, name, actor_name } = program;
  await queries.revoke(tx, id);
  await voidApprovals(tx, wakeups, { org_id, token_id: id });
  await wakeups.send(tx, "tokens", id);
  await recordActivity(tx, {
    ...{ org_id, project_id: null, actor_token_id: id, actor_name },
    ...{ action: "token.deleted", target: id, detail: { name } },
  });
}

/** Ends the token of a connected program that gives its text. */
export async function disconnect(platform: Platform, text: string): Promise<void> {
  if (tokens.isTokenText(text))
    await platform.db.transaction().execute((tx) => end(platform, tx, { hash: tokens.hashOf(text) }));
}

export interface Device {
  /** What the program sends to ask for its token. */
  readonly device_code: string;
  /** What a person types. */
  readonly user_code: string;
  /** Seconds. */
  readonly expires_in: number;
  readonly interval: number;
}

/** Begins the wait of a program without a browser for a person who types its code elsewhere. */
export async function startDevice(
  { db }: Platform,
  { client, device, address }: { readonly client: rules.Client; readonly device: string; readonly address: string },
): Promise<Device> {
  if (!(await queries.makeRoomForDevice(db, limits.oauth_devices_waiting)))
    throw new Refused("rate_limited", { error: "Too many programs wait for their codes.", retryAfterSeconds: 60 });
  const [device_code, user_code] = [secret(), rules.newUserCode()];
  await queries.insertGrant(db, {
    ...{ hash: tokens.hashOf(device_code), user_code_hash: rules.userCodeHash(user_code), client_id: client.id },
    ...{ device, address, redirect_uri: null, challenge: null, token_id: null, token_expires_at: null },
    expires_at: within(rules.deviceMs),
  });
  return { device_code, user_code, expires_in: rules.deviceMs / 1000, interval: 2 * (rules.pollMs / 1000) };
}

const openerOf = ({ person_id, token_id }: Caller) => person_id ?? token_id;

/** Refuses an address that types many codes. */
export async function limitTyped({ db }: Pick<Platform, "db">, address: string): Promise<void> {
  const most = limits.user_codes_per_minute;
  if (await db.transaction().execute((tx) => queries.countTyped(tx, address, most))) return;
  throw new Refused("rate_limited", {
    error: `More than ${most} codes were typed here in a minute.`,
    retryAfterSeconds: 60,
  });
}

/** Returns the program that waits for this code, which then belongs to the caller alone; undefined when there is none or it is another's. */
export async function openDevice({ db }: Platform, caller: Caller, typed: string) {
  return db.transaction().execute((tx) => openGrant(tx, caller, typed));
}

async function openGrant(tx: Tx, caller: Caller, typed: string): Promise<Grant | undefined> {
  const grant = await queries.lockGrant(tx, { user_code_hash: rules.userCodeHash(typed) });
  if (grant === undefined || !grant.is_open || (grant.opened_by ?? openerOf(caller)) !== openerOf(caller))
    return undefined;
  if (grant.token_id !== null || grant.denied_at !== null) return undefined;
  await queries.updateGrant(tx, grant.hash, { opened_by: openerOf(caller) });
  return grant;
}

/** Records what a person decided about the code that they typed; null denies. Returns false when the code is not theirs to decide. */
export async function decideDevice({ db }: Platform, caller: Caller, typed: string, choice: Choice | null) {
  return db.transaction().execute(async (tx) => {
    const grant = await openGrant(tx, caller, typed);
    if (grant?.opened_by !== openerOf(caller)) return false;
    const { device, hash } = grant;
    const made =
      choice === null
        ? { denied_at: new Date() }
        : await allow(tx, { caller, client: rules.commandLine, device, choice, until: within(rules.deviceMs) });
    await queries.updateGrant(tx, hash, made);
    return true;
  });
}

/** The names of RFC 8628, section 3.5. */
export type Waiting = "authorization_pending" | "slow_down" | "access_denied" | "expired_token" | "invalid_grant";

/** Returns the token of a program that waits, once a person has allowed it, or what to answer. */
export async function pollDevice({ db }: Platform, deviceCode: string, clientId: string): Promise<Issued | Waiting> {
  return db.transaction().execute(async (tx) => {
    const grant = await queries.lockGrant(tx, { hash: tokens.hashOf(deviceCode) });
    if (grant?.challenge !== null || grant.client_id !== clientId || grant.used_at !== null) return "invalid_grant";
    if (!grant.is_open) return "expired_token";
    if (grant.denied_at !== null) return "access_denied";
    if (grant.token_id !== null) return (await give(tx, grant)) ?? "access_denied";
    await queries.updateGrant(tx, grant.hash, { polled_at: new Date() });
    return grant.polled_ms_ago !== null && grant.polled_ms_ago < rules.pollMs ? "slow_down" : "authorization_pending";
  });
}
