import type { Log } from "./log.ts";

/** Does a piece of work that has a name. False when it failed; never rejects. */
export type Attempt = (name: string, work: () => void | Promise<void>) => Promise<boolean>;

/**
 * For work on many things, again and again, where a fault of one may not stop the others. A fault is logged when it begins, not each
 * time it comes again, because a full disk would be filled by its own messages.
 */
export function createAttempts(log: Log, message: string): Attempt {
  const failing = new Set<string>();
  return async (name, work) => {
    try {
      await work();
      failing.delete(name);
      return true;
    } catch (error) {
      if (!failing.has(name)) log.error({ err: error, of: name }, message);
      failing.add(name);
      return false;
    }
  };
}
