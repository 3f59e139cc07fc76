import { Refused, type Caller } from "../features/context.ts";

export interface OpenCount {
  /** Counts one more and returns the function to call when it is over. Refuses with `rate_limited` when there are too many. */
  open(caller: string): () => void;
}

/** Limits how many operations of one kind each token has open, and each organization with all its tokens. */
export interface CallerCount {
  open(caller: Pick<Caller, "token_id" | "org_id">): () => void;
}

const retryAfterSeconds = 5;

export function createOpenCount(most: number, what: string, holder: "token" | "organization" = "token"): OpenCount {
  const open = new Map<string, number>();
  return {
    open(caller) {
      const count = open.get(caller) ?? 0;
      if (count >= most) {
        const error = `This ${holder} has ${most} ${what} open, which is the most it may have. Close one first.`;
        throw new Refused("rate_limited", { error, retryAfterSeconds });
      }
      open.set(caller, count + 1);
      let closed = false;
      return () => {
        if (closed) return;
        closed = true;
        const left = (open.get(caller) ?? 1) - 1;
        if (left === 0) open.delete(caller);
        else open.set(caller, left);
      };
    },
  };
}

/** An organization may have many tokens, so the limit of each alone would not bound what it has open. */
export function createCallerCount(perToken: number, perOrganization: number, what: string): CallerCount {
  const tokens = createOpenCount(perToken, what);
  const organizations = createOpenCount(perOrganization, what, "organization");
  return {
    open({ token_id, org_id }) {
      const closeOfToken = tokens.open(token_id);
      try {
        const closeOfOrganization = organizations.open(org_id);
        return () => {
          closeOfToken();
          closeOfOrganization();
        };
      } catch (error) {
        closeOfToken();
        throw error;
      }
    },
  };
}
