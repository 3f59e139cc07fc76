import { nearest } from "./nearest.ts";

/** Words for the same act; a group of commands has at most one of each list. */
const sameActs = [
  ["remove", "delete", "unset", "revoke", "rm", "destroy"],
  ["add", "create", "set", "new"],
];

/**
 * Returns the command of a group that a word probably means: one for the same act before one that is spelled alike, so that `rm` is never
 * taken for `run`.
 */
export function verbMeant(word: string, verbs: readonly string[]): string | undefined {
  const acts = sameActs.find((words) => words.includes(word)) ?? [];
  return acts.find((act) => verbs.includes(act)) ?? (acts.length > 0 ? undefined : nearest(word, verbs));
}
