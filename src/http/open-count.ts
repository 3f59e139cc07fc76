import { Refused } from "../features/context.ts";

/** Limits how many operations of one kind each token or organization has open. */
export interface OpenCount {
  /** Counts one more and returns the function to call when it is over. Refuses with `rate_limited` when there are too many. */
  open(caller: string): () => void;
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
