import { newId } from "../../kit/ids.ts";
import type { Vault } from "../../store/vault.ts";
import type { HandlerPlatform } from "../context.ts";
import { countWaiting, requestPreviewFetch } from "./preview-queries.ts";
import { wakeComments } from "./comment-queries.ts";
import * as queries from "./queries.ts";
import { readHook, type HookRequest } from "./rules.ts";

export {
  deleteOldFollowDeliveries,
  endDeliveries,
  endFetch,
  insertDelivery,
  markNotShown,
  markShown,
  nextFetchMs,
  queueCommitStatus,
  takeFollow,
  takeStatus,
  trimDeliveries,
  waitingDeliveries,
  type DueStatus,
  type TakenFollow,
} from "./queries.ts";
export * from "./preview-queries.ts";
export * from "./comment-queries.ts";
export { commentHost, commentMarker, commentText, type CommentHost } from "./comment-rules.ts";
export { planEvent, retryAfterMs, showsStatuses, statusRequest, type HostRequest } from "./rules.ts";

const names = { key: "follow_key", token: "follow_token", secret: "follow_secret" } as const;

export function sealFollow(vault: Vault, id: string, part: keyof typeof names, text: string): Buffer {
  return vault.seal(id, names[part], text);
}

export function openFollow(vault: Vault, id: string, part: keyof typeof names, sealed: Buffer | null): string | null {
  return sealed === null ? null : vault.open(id, names[part], sealed);
}

/** Of one repository, how many branches at most wait to be fetched for a preview. */
const mostBranches = 20;

export interface HookAnswer {
  readonly outcome: "refused" | "waiting" | "ignored";
  readonly delivery_id: string;
  readonly reason: string | null;
}

/** A follow that receives webhook deliveries, with what they are checked against. */
export type Hook = NonNullable<Awaited<ReturnType<typeof queries.selectHook>>>;

/** Returns the follow with this id if it receives deliveries now; undefined for any other text. */
export async function findHook({ db }: Pick<HandlerPlatform, "db">, id: string): Promise<Hook | undefined> {
  return /^fol_[0-9a-z]{1,40}$/.test(id) ? queries.selectHook(db, id) : undefined;
}

/** Receives a webhook delivery: stores it, and requests a fetch when it concerns the followed branch. */
export async function receiveHook(
  { db, vault, wakeups }: Pick<HandlerPlatform, "db" | "vault" | "wakeups">,
  follow: Hook,
  request: HookRequest,
): Promise<HookAnswer> {
  const { id } = follow;
  const read = readHook(openFollow(vault, id, "secret", follow.sealed_secret) ?? "", follow, request);
  const { event, commit } = read;
  const delivery_id = newId("fdl");
  const preview = read.outcome === "fetch" ? read.preview : null;
  const of = {
    id: delivery_id,
    org_id: follow.org_id,
    follow_id: id,
    source: "hook",
    event,
    commit,
    branch: preview,
  } as const;
  if (read.outcome === "ignored") {
    const { reason, signed } = read;
    await queries.insertDelivery(db, { ...of, status: "ignored", reason, signed });
    await queries.trimDeliveries(db, id);
    if (signed && /pull|merge/i.test(event)) await wakeComments(db, id);
    return { outcome: signed ? "ignored" : "refused", delivery_id, reason };
  }
  if (preview !== null && (await countWaiting(db, id)) >= mostBranches) {
    const reason = `${mostBranches} other branches wait for their preview. Push this one again later.`;
    await queries.insertDelivery(db, { ...of, status: "ignored", reason, signed: true });
    await queries.trimDeliveries(db, id);
    return { outcome: "ignored", delivery_id, reason };
  }
  await db.transaction().execute(async (tx) => {
    await queries.insertDelivery(tx, { ...of, status: "waiting", signed: true });
    if (preview === null) await queries.requestFetch(tx, id, "hook");
    else await requestPreviewFetch(tx, { ...follow, follow_id: id, branch: preview });
    await wakeups.send(tx, "follow", id);
  });
  return { outcome: "waiting", delivery_id, reason: null };
}
