import { isUnreachable } from "./managers.ts";

/** Returns what `read` returns, or what it last returned for this key if this machine's engine accepts no connection. */
export type Recall = <T>(key: string, read: () => Promise<T>) => Promise<T>;

/** Creates a memory for what never changes, such as an image, so that replicas start elsewhere while this machine's engine is down. */
export function createRecall(): Recall {
  const known = new Map<string, unknown>();
  return async <T>(key: string, read: () => Promise<T>) => {
    try {
      const found = await read();
      known.set(key, found);
      return found;
    } catch (error) {
      if (!isUnreachable(error) || !known.has(key)) throw error;
      return known.get(key) as T;
    }
  };
}
