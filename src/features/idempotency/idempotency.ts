import { createHash } from "node:crypto";
import { limits } from "../../contract/limits.ts";
import { canonicalJson } from "../../kit/canonical-json.ts";
import type { Db, Tx } from "../../store/database.ts";
import { Refused, type Caller, type HandlerPlatform } from "../context.ts";
import { dropOldAnswers, releaseKey, selectKey, takeKey, writeOutcome, type Hold } from "./queries.ts";

export { deleteEndedKeys } from "./queries.ts";

export interface KeyedRequest {
  readonly key: string;
  readonly caller: Pick<Caller, "org_id" | "token_id">;
  /** Everything that must match for two requests to count as the same. */
  readonly request: unknown;
  /** After this time a request without an outcome counts as lost. */
  readonly holdMs: number;
}

/** A stored response; `text` is JSON, undefined when there was no body. */
export interface StoredAnswer {
  readonly status: number;
  readonly text?: string | undefined;
}

/** The exclusive right to execute the request of a key. Exactly one of its methods must be called. */
export type HeldKey = ReturnType<typeof holdOf>;

export type Claimed = { readonly held: HeldKey } | { readonly replay: StoredAnswer };

// Semantics: a key is stored for a day.
const rememberedMs = 24 * 60 * 60 * 1000;

/**
 * Returns a hold on the key, or the response that its request got before. Throws `idempotency_mismatch` if the key belongs to another
 * request, `idempotency_answer_gone` if its response is no longer kept, and `idempotency_in_progress` if its request is still running or its
 * outcome was lost.
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
  // The key was released just now; a retry will get it.
  if (known === undefined) throw inProgress();
  if (!known.request_hash.equals(request_hash)) throw new Refused("idempotency_mismatch");
  if (known.sealed_answer === null)
    throw known.status_code === null ? inProgress() : new Refused("idempotency_answer_gone");
  return {
    replay: JSON.parse(platform.vault.open(owner.token_id, secretName(key), known.sealed_answer)) as StoredAnswer,
  };
}

/** Drops the oldest responses of organizations whose responses exceed their limit together. Their requests are still not executed again. */
export async function limitKeptAnswers(
  db: Db,
  mostBytes: number = limits.idempotency_answers_bytes_per_organization,
): Promise<number> {
  return dropOldAnswers(db, mostBytes);
}

function inProgress(): Refused {
  return new Refused("idempotency_in_progress", { retryAfterSeconds: 1 });
}

function holdOf(platform: HandlerPlatform, hold: Hold) {
  return {
    /** Stores the response for a day; of a very large one, that there was one. Throws when the hold was lost: no change is made twice. */
    async keep(db: Db | Tx, answer: StoredAnswer) {
      const fits = Buffer.byteLength(answer.text ?? "") <= limits.idempotency_answer_bytes;
      const sealed_answer = fits
        ? platform.vault.seal(hold.token_id, secretName(hold.key), JSON.stringify(answer))
        : null;
      if (!(await writeOutcome(db, hold, { status_code: answer.status, sealed_answer }))) throw inProgress();
    },
    /** Records, in the transaction that makes the change, that the request must not be executed again, although its outcome is not known yet. */
    async commit(tx: Tx) {
      if (!(await writeOutcome(tx, hold, undefined))) throw inProgress();
    },
    /** Frees the key for immediate reuse, because nothing was changed. */
    release: () => releaseKey(platform.db, hold),
  };
}

// Some responses contain rows of a project's database, so all are sealed: access to the platform's database alone does not reveal them.
const secretName = (key: string) => `idempotency:${key}`;
