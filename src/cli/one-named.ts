import { CliError } from "./failures.ts";

interface Naming<Thing> {
  readonly noun: string;
  /** Returns the words that may name a thing: its id, its name. */
  readonly names: (thing: Thing) => readonly string[];
  readonly list: string;
  /** Whether the word may be a secret; then errors do not repeat it. */
  readonly secret?: boolean;
}

/** Finds the one thing that a word on the command line names. Throws `CliError` if there is none or more than one. */
export function oneNamed<Thing>(
  things: readonly Thing[],
  given: string,
  { noun, names, list, secret }: Naming<Thing>,
): Thing {
  const [found, ...more] = things.filter((thing) => names(thing).includes(given));
  const hint = `\`${list}\` lists them.`;
  if (more.length > 0)
    throw new CliError("conflict", "ambiguous", {
      message: secret === true ? `Several ${noun}s have that name.` : `Several ${noun}s have the name "${given}".`,
      hint: `Use the id: ${hint}`,
    });
  if (found === undefined)
    throw new CliError("notFound", "not_found", {
      message: secret === true ? `There is no such ${noun}.` : `There is no ${noun} "${given}".`,
      hint,
    });
  return found;
}
