import { createHash } from "node:crypto";
import { canonicalJson } from "../../kit/canonical-json.ts";
import type { Db, Tx } from "../../store/database.ts";
import { Refused, type Caller, type HandlerPlatform } from "../context.ts";
import { releaseKey, selectKey, takeKey, writeOutcome, type Hold } from "./queries.ts";

export { deleteEndedKeys } from "./queries.ts";

/** A write that came with an `Idempotency-Key`. */
export interface KeyedRequest {
  readonly key: string;
  readonly caller: Pick<Caller, "org_id" | "token_id">;
  /** Whatever two requests must have in common to be the same one. */
  readonly request: unknown;
  /** How long it may take before it is taken for lost. */
  readonly holdMs: number;
}

/** What was answered; `text` is JSON, undefined when there was no body. */
export interface StoredAnswer {
  readonly status: number;
  readonly text?: string | undefined;
}

/** The right to do the request of a key. Exactly one of its endings is called. */
export interface HeldKey {
  /** Keeps the answer for a day, in the transaction that makes the change or after it. Throws when the hold was lost, so that a change is not made twice. */
  keep(db: Db | Tx, answer: StoredAnswer): Promise<void>;
  /** The change is made in this transaction, and what comes of it is not known yet: it must not be made again. */
  commit(tx: Tx): Promise<void>;
  /** Nothing was changed: the key may be used again at once. */
  release(): Promise<void>;
}

export type Claimed = { readonly held: HeldKey } | { readonly replay: StoredAnswer };

// Semantics: a key is remembered for a day.
const rememberedMs = 24 * 60 * 60 * 1000;

/**
 * The hold on a key, or the answer that its request got before. Refuses with `idempotency_mismatch` a key of another request and with
 * `idempotency_in_progress` one whose request is under way or whose outcome was lost.
 */
export async function claimKey(platform: HandlerPlatform, keyed: KeyedRequest): Promise<Claimed> {
  const { key, caller, holdMs } = keyed;
  const owner = { org_id: caller.org_id, token_id: caller.token_id, key };
  const now = platform.clock.now();
  const after = (ms: number) => new Date(now.getTime() + ms);
  const request_hash = createHash("sha256").update(canonicalJson(keyed.request)).digest();
  const wanted = { ...owner, request_hash, held_until: after(holdMs), expires_at: after(rememberedMs) };
  const attempt = await takeKey(platform.db, wanted, now);
  if (attempt !== undefined) return { held: holdOf(platform, { ...owner, attempt }) };
  const known = await selectKey(platform.db, owner);
  // Released in this moment: the next try gets it.
  if (known === undefined) throw inProgress();
  if (!known.request_hash.equals(request_hash)) throw new Refused("idempotency_mismatch");
  if (known.sealed_answer === null) throw inProgress();
  return {
    replay: JSON.parse(platform.vault.open(owner.token_id, secretName(key), known.sealed_answer)) as StoredAnswer,
  };
}

function inProgress(): Refused {
  return new Refused("idempotency_in_progress", { retryAfterSeconds: 1 });
}

function holdOf(platform: HandlerPlatform, hold: Hold): HeldKey {
  return {
    async keep(db, answer) {
      const sealed_answer = platform.vault.seal(hold.token_id, secretName(hold.key), JSON.stringify(answer));
      if (!(await writeOutcome(db, hold, { status_code: answer.status, sealed_answer }))) throw inProgress();
    },
    async commit(tx) {
      if (!(await writeOutcome(tx, hold, undefined))) throw inProgress();
    },
    release: () => releaseKey(platform.db, hold),
  };
}

// Some answers hold rows of a project's database, so all are sealed: our own database alone gives none of them away.
const secretName = (key: string) => `idempotency:${key}`;
