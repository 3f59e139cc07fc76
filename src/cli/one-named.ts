import { CliError } from "./failures.ts";

interface Naming<Thing> {
  readonly noun: string;
  /** What a thing may be called by: its id, its name. */
  readonly names: (thing: Thing) => readonly string[];
  /** The command that lists the things. */
  readonly list: string;
  /** The word may be a secret and is not repeated. */
  readonly secret?: boolean;
}

/** The one thing that a word on the command line names. */
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
