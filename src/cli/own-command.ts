import { wordsOfOthers } from "./words-of-others.ts";

/** Returns a hint that names Berth's command for a command of another tool; undefined if it is unknown. */
export function ownCommandHint(words: readonly string[], nouns: readonly string[]): string | undefined {
  const [first = "", ...rest] = words;
  const given = [...first.split(":"), ...rest];
  const lengths = [3, 2, 1].filter((length) => length <= given.length);
  const known = lengths.map((length) => given.slice(0, length).join(" ")).find((phrase) => phrase in wordsOfOthers);
  const own = known === undefined ? (optionOfOthers(rest[0]) ?? verbOfNoun(first, nouns)) : wordsOfOthers[known];
  return own === undefined || /^[A-Z]/.test(own) ? own : `Berth's command for this is \`${own}\`.`;
}

/** Converts `domains:add` to `berth domains add`. */
function verbOfNoun(word: string, nouns: readonly string[]): string | undefined {
  const [noun = "", ...verbs] = word.split(":");
  return verbs.length > 0 && nouns.includes(noun) ? `berth ${[noun, ...verbs].join(" ")}` : undefined;
}

/** Hints at `-p`, because other tools use `--app` with every command. */
function optionOfOthers(option: string | undefined): string | undefined {
  return option === "-a" || option === "--app" ? "Name the project with `-p <slug>`." : undefined;
}
